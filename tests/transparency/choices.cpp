// SPDX-License-Identifier: Apache-2.0
// The ranks of a collective describe the same signature in different ways. All of them must make the same choice. Four
// ranks.
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "tests/transparency/operand.hpp"
#include "tests/transparency/watchdog.hpp"

using namespace bestride::test;

namespace {

constexpr int ints = 1 << 14;

enum Form { blocking, nonblocking, persistent, form_count };

/// Rank `rank` describes its buffers as `odd`, all other ranks as `common`.
struct Scenario {
  const char* name;
  Naming common, odd;
  int rank;
};
constexpr Scenario scenarios[] = {
    {"dup on rank 0", Naming::predefined, Naming::duplicate, 0},
    {"dup on rank 1", Naming::predefined, Naming::duplicate, 1},
    {"no dup on rank 3", Naming::duplicate, Naming::predefined, 3},
    {"one element on rank 2", Naming::predefined, Naming::contiguous, 2},
    {"deep on rank 0", Naming::predefined, Naming::deep, 0},
    {"deep on rank 3", Naming::predefined, Naming::deep, 3},
    {"misaligned on rank 1", Naming::predefined, Naming::misaligned, 1},
    {"inspected on rank 1", Naming::strided, Naming::inspected, 1},
    {"inspected on rank 2", Naming::strided, Naming::inspected, 2},
    {"list on rank 1", Naming::strided, Naming::listed, 1},
    {"gaps on rank 0", Naming::predefined, Naming::strided, 0},
    {"packed with before on rank 3", Naming::strided, Naming::used_first, 3},
};

struct Run {
  Naming naming;
  Form form;
  int root, rank, size;
};

/// Runs the collective in each scenario and form. `collective` gets the naming of this rank's buffers.
void in_every_way(const std::function<void(const Run&)>& collective) {
  static char text[100];
  const char* forms[] = {"blocking", "nonblocking", "persistent"};
  // TEST_SCENARIO=2 runs only scenario 2.
  const char* only = std::getenv("TEST_SCENARIO");
  for (const Scenario& scenario : scenarios)
    for (int form = 0; form < form_count; ++form) {
      if (only && &scenario != &scenarios[std::atoi(only)]) continue;
      std::snprintf(text, sizeof text, "%s, %s", scenario.name, forms[form]);
      step(text);
      const int rank = world_rank();
      collective({rank == scenario.rank ? scenario.odd : scenario.common, static_cast<Form>(form), form == 1 ? 3 : 0,
                  rank, world_size()});
    }
}

int value(int source, int target, int index) { return source * 1000003 + target * 10007 + index; }

void fill(Operand& operand, int blocks, int source, bool same_for_all) {
  for (int b = 0; b < blocks; ++b)
    for (int i = 0; i < ints; ++i) operand.at(b, i) = value(source, same_for_all ? 0 : b, i);
}

void expect_from_all(Operand& got, const Run& run, int target) {
  int wrong = 0;
  for (int b = 0; b < run.size; ++b)
    for (int i = 0; i < ints; ++i) wrong += got.at(b, i) != value(b, target, i);
  if (wrong)
    fail_check(__FILE__, __LINE__, std::string(current_step.load()) + ": " + std::to_string(wrong) + " wrong ints");
}

void expect_from_one(Operand& got, int source, int target) {
  int wrong = 0;
  for (int i = 0; i < ints; ++i) wrong += got.at(0, i) != value(source, target, i);
  if (wrong)
    fail_check(__FILE__, __LINE__, std::string(current_step.load()) + ": " + std::to_string(wrong) + " wrong ints");
}

/// Counts and displacements of the v forms, in elements of the operand's type.
struct Places {
  Places(const Operand& operand, int size)
      : counts(static_cast<std::size_t>(size), operand.count()), at(counts.size()) {
    for (int i = 0; i < size; ++i) at[static_cast<std::size_t>(i)] = i * operand.count();
  }
  std::vector<int> counts, at;
};

void complete(MPI_Request request, Form form) {
  if (form == blocking) return;
  if (form == persistent) MPI_Start(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (form == persistent) MPI_Request_free(&request);
}

/// Sums elements of derived types, whose ints are contiguous or every second one.
void add(void* in, void* inout, int* count, MPI_Datatype* type) {
  MPI_Aint low = 0, extent = 0;
  int size = 0;
  MPI_Type_get_extent(*type, &low, &extent);
  MPI_Type_size(*type, &size);
  const int each = size / static_cast<int>(sizeof(int));
  const bool gaps = extent == 2 * static_cast<MPI_Aint>(size);
  for (int i = 0; i < *count * each; ++i)
    static_cast<int*>(inout)[gaps ? 2 * i : i] += static_cast<int*>(in)[gaps ? 2 * i : i];
}

void expect_sum(Operand& got, const Run& run, int target, int block, int ranks) {
  int wrong = 0;
  for (int i = 0; i < ints; ++i) {
    int sum = 0;
    for (int r = 0; r < ranks; ++r) sum += value(r, target, i);
    wrong += got.at(block, i) != sum;
  }
  if (wrong)
    fail_check(
        __FILE__, __LINE__,
        std::string(current_step.load()) + ": " + std::to_string(wrong) + " wrong sums of " + std::to_string(run.size));
}

struct Operation {
  Operation() { MPI_Op_create(add, 1, &op); }
  ~Operation() { MPI_Op_free(&op); }
  MPI_Op op;
};

}  // namespace

// The call in each form: blocking, nonblocking, persistent.
#define IN_FORM(Name, Nonblocking, ...)                                                                  \
  do {                                                                                                   \
    MPI_Request request = MPI_REQUEST_NULL;                                                              \
    if (run.form == blocking) MPI_##Name(__VA_ARGS__, MPI_COMM_WORLD);                                   \
    if (run.form == nonblocking) MPI_##Nonblocking(__VA_ARGS__, MPI_COMM_WORLD, &request);               \
    if (run.form == persistent) MPI_##Name##_init(__VA_ARGS__, MPI_COMM_WORLD, MPI_INFO_NULL, &request); \
    complete(request, run.form);                                                                         \
  } while (false)

MPI_CASE(bcast) {
  in_every_way([](const Run& run) {
    Operand data(run.naming, ints, 1);
    if (run.rank == run.root) fill(data, 1, run.root, true);
    IN_FORM(Bcast, Ibcast, data.address(), data.count(), data.type(), run.root);
    expect_from_one(data, run.root, 0);
  });
}

MPI_CASE(allgather) {
  in_every_way([](const Run& run) {
    Operand out(run.naming, ints, 1), in(run.naming, ints, run.size);
    fill(out, 1, run.rank, true);
    IN_FORM(Allgather, Iallgather, out.address(), out.count(), out.type(), in.address(), in.count(), in.type());
    expect_from_all(in, run, 0);
  });
}

MPI_CASE(allgather_with_other_types_sent_than_received) {
  in_every_way([](const Run& run) {
    Operand out(run.naming, ints, 1), in(run.rank % 2 ? Naming::predefined : Naming::strided, ints, run.size);
    fill(out, 1, run.rank, true);
    IN_FORM(Allgather, Iallgather, out.address(), out.count(), out.type(), in.address(), in.count(), in.type());
    expect_from_all(in, run, 0);
  });
}

MPI_CASE(allgatherv) {
  in_every_way([](const Run& run) {
    Operand out(run.naming, ints, 1), in(run.naming, ints, run.size);
    const Places places(in, run.size);
    fill(out, 1, run.rank, true);
    IN_FORM(Allgatherv, Iallgatherv, out.address(), out.count(), out.type(), in.address(), places.counts.data(),
            places.at.data(), in.type());
    expect_from_all(in, run, 0);
  });
}

MPI_CASE(alltoall) {
  in_every_way([](const Run& run) {
    Operand out(run.naming, ints, run.size), in(run.naming, ints, run.size);
    fill(out, run.size, run.rank, false);
    IN_FORM(Alltoall, Ialltoall, out.address(), out.count(), out.type(), in.address(), in.count(), in.type());
    expect_from_all(in, run, run.rank);
  });
}

MPI_CASE(alltoallv) {
  in_every_way([](const Run& run) {
    Operand out(run.naming, ints, run.size), in(run.naming, ints, run.size);
    const Places places(in, run.size);
    fill(out, run.size, run.rank, false);
    IN_FORM(Alltoallv, Ialltoallv, out.address(), places.counts.data(), places.at.data(), out.type(), in.address(),
            places.counts.data(), places.at.data(), in.type());
    expect_from_all(in, run, run.rank);
  });
}

MPI_CASE(gather) {
  in_every_way([](const Run& run) {
    Operand out(run.naming, ints, 1), in(run.naming, ints, run.size);
    fill(out, 1, run.rank, true);
    IN_FORM(Gather, Igather, out.address(), out.count(), out.type(), in.address(), in.count(), in.type(), run.root);
    if (run.rank == run.root) expect_from_all(in, run, 0);
  });
}

MPI_CASE(gather_in_place_at_the_root) {
  in_every_way([](const Run& run) {
    Operand out(run.naming, ints, 1), in(run.naming, ints, run.size);
    fill(out, 1, run.rank, true);
    for (int i = 0; i < ints; ++i) in.at(run.root, i) = value(run.root, 0, i);
    void* const sent = run.rank == run.root ? MPI_IN_PLACE : out.address();
    IN_FORM(Gather, Igather, sent, out.count(), out.type(), in.address(), in.count(), in.type(), run.root);
    if (run.rank == run.root) expect_from_all(in, run, 0);
  });
}

MPI_CASE(scatter) {
  in_every_way([](const Run& run) {
    Operand out(run.naming, ints, run.size), in(run.naming, ints, 1);
    fill(out, run.size, run.rank, false);
    IN_FORM(Scatter, Iscatter, out.address(), out.count(), out.type(), in.address(), in.count(), in.type(), run.root);
    expect_from_one(in, run.root, run.rank);
  });
}

MPI_CASE(reduce) {
  const Operation sum;
  in_every_way([&](const Run& run) {
    Operand out(run.naming, ints, 1), in(run.naming, ints, 1);
    fill(out, 1, run.rank, true);
    IN_FORM(Reduce, Ireduce, out.address(), in.address(), out.count(), out.type(), sum.op, run.root);
    if (run.rank == run.root) expect_sum(in, run, 0, 0, run.size);
  });
}

MPI_CASE(allreduce) {
  const Operation sum;
  in_every_way([&](const Run& run) {
    Operand out(run.naming, ints, 1), in(run.naming, ints, 1);
    fill(out, 1, run.rank, true);
    IN_FORM(Allreduce, Iallreduce, out.address(), in.address(), out.count(), out.type(), sum.op);
    expect_sum(in, run, 0, 0, run.size);
  });
}

MPI_CASE(reduce_scatter_block) {
  const Operation sum;
  in_every_way([&](const Run& run) {
    Operand out(run.naming, ints, run.size), in(run.naming, ints, 1);
    fill(out, run.size, run.rank, false);
    IN_FORM(Reduce_scatter_block, Ireduce_scatter_block, out.address(), in.address(), out.count(), out.type(), sum.op);
    expect_sum(in, run, run.rank, 0, run.size);
  });
}

MPI_CASE(reduce_scatter) {
  const Operation sum;
  in_every_way([&](const Run& run) {
    Operand out(run.naming, ints, run.size), in(run.naming, ints, 1);
    const Places places(out, run.size);
    fill(out, run.size, run.rank, false);
    IN_FORM(Reduce_scatter, Ireduce_scatter, out.address(), in.address(), places.counts.data(), out.type(), sum.op);
    expect_sum(in, run, run.rank, 0, run.size);
  });
}

MPI_CASE(sums_of_misaligned_buffers) {
  // A predefined operation takes only predefined types: the ranks differ in where their buffers are.
  for (int odd = 0; odd < world_size(); ++odd) {
    const int rank = world_rank(), size = world_size();
    const Run run{rank == odd ? Naming::misaligned : Naming::predefined, blocking, 0, rank, size};
    Operand out(run.naming, ints, size), in(run.naming, ints, size);
    fill(out, size, rank, false);
    MPI_Allreduce(out.address(), in.address(), ints, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    expect_sum(in, run, 0, 0, size);
    MPI_Reduce_scatter_block(out.address(), in.address(), ints, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    expect_sum(in, run, rank, 0, size);
    // In place at the root alone. Root 0: MPICH 4.0.2 crashes with any other.
    MPI_Reduce(rank == 0 ? MPI_IN_PLACE : out.address(), rank == 0 ? out.address() : in.address(), ints, MPI_INT,
               MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) expect_sum(out, run, 0, 0, size);
  }
}

MPI_CASE(elements_that_overlap_on_one_rank) {
  // Rank 1 sends the same int many times.
  const int rank = world_rank(), size = world_size();
  MPI_Datatype type;
  MPI_Type_create_hvector(ints, 1, rank == 1 ? 0 : sizeof(int), MPI_INT, &type);
  MPI_Type_commit(&type);
  std::vector<int> out(ints);
  for (int i = 0; i < ints; ++i) out[static_cast<std::size_t>(i)] = value(rank, 0, i);
  for (int form = 0; form < 2; ++form) {
    std::vector<int> in(static_cast<std::size_t>(ints * size));
    MPI_Request request = MPI_REQUEST_NULL;
    if (form == 0) MPI_Allgather(out.data(), 1, type, in.data(), ints, MPI_INT, MPI_COMM_WORLD);
    if (form == 1) MPI_Iallgather(out.data(), 1, type, in.data(), ints, MPI_INT, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    int wrong = 0;
    for (int r = 0; r < size; ++r)
      for (int i = 0; i < ints; ++i) wrong += in[static_cast<std::size_t>(r * ints + i)] != value(r, 0, r == 1 ? 0 : i);
    CHECK_EQUAL(0, wrong);
  }
  MPI_Type_free(&type);
}

int main(int argc, char** argv) { return run_watched_cases(argc, argv); }
