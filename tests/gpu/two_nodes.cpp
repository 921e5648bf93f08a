// SPDX-License-Identifier: Apache-2.0
// Hierarchical collectives with device memory on some ranks and other memory on others: many at a time, repeatedly
// started persistent ones, quantized ones, and driver failures on all ranks. All must use the hierarchy. Only
// contiguous types, so that the tests also run with a library that is declared GPU-aware. collectives.cpp has every
// form, type and pair of memories.
#include <algorithm>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "tests/gpu/device_buffer.hpp"
#include "tests/hierarchical/calls.hpp"
#include "tests/hierarchical/job.hpp"
#include "tests/support/harness.hpp"

using namespace bestride::test;

namespace {

constexpr What kinds[] = {What::allgather, What::broadcast, What::allreduce, What::reduce_scatter_block,
                          What::alltoall,  What::reduce,    What::gather,    What::scatter};
constexpr int small_count = 3, long_count = 20011;

template <class Number>
std::vector<char> bytes_of(const std::vector<Number>& numbers) {
  const auto* data = reinterpret_cast<const char*>(numbers.data());
  return {data, data + numbers.size() * sizeof(Number)};
}

/// A collective with two buffers whose kinds of memory differ between ranks. The result is compared with the MPI
/// library's for host memory. Must not move, because MPI uses the buffers.
class Pending {
 public:
  Pending(What what, int count, int salt, bool in_place = false, MPI_Comm comm = MPI_COMM_WORLD)
      : what_(what),
        salt_(salt),
        in_place_(in_place),
        all_(static_cast<std::size_t>(count) * static_cast<std::size_t>(world_size())),
        out_(every_kind[(salt + world_rank()) % 3], 4 * all_),
        in_(every_kind[(salt / 3 + 1 + world_rank()) % 3], 4 * all_) {
    given_.out_count = given_.in_count = count;
    given_.out_type = given_.in_type = MPI_INT;
    given_.op = MPI_SUM;
    given_.root = salt % world_size();
    given_.comm = comm;
    const bool root = world_rank() == given_.root;
    if (what == What::broadcast || what == What::alltoall ||
        ((what == What::gather || what == What::scatter || what == What::reduce) && !root))
      in_place_ = false;
    write(0);
    place(out_.data(), in_.data());
  }
  /// Writes the numbers for a start.
  void write(int start) {
    std::vector<int> sent(all_), there(all_);
    for (std::size_t i = 0; i < all_; ++i) {
      sent[i] = salt_ * 1000 + start * 77 + world_rank() * 131 + static_cast<int>(i % 977);
      there[i] = -sent[i];
    }
    out_.write(sent_ = bytes_of(sent));
    in_.write(before_ = bytes_of(there));
  }
  int begin(MPI_Request* request, Wait wait = Wait::nonblocking) {
    const Watch watch(group_of("", given_.comm, true), true, Wait::nonblocking);
    const int error = call(what_, {wait, false, false}, given_, request);
    CHECK_EQUAL("", watch.verdict());
    return error;
  }
  void check() {
    std::vector<char> sent = sent_, expected = before_;
    const std::vector<char> own = before_;
    place(sent.data(), expected.data());
    // MPICH 4.0.2 crashes in a long in-place MPI_Reduce if the root is not the first rank of its node.
    if (in_place_ && what_ == What::reduce) given_.out = own.data();
    CHECK_EQUAL(MPI_SUCCESS, complete(what_, {Wait::in_call, false, true}, given_));
    place(out_.data(), in_.data());
    const std::string text = std::string(name(what_)) + ", salt " + std::to_string(salt_);
    if (out_.read() != sent) fail_check(__FILE__, __LINE__, text + ": the send buffer differs");
    if (in_.read() != expected) fail_check(__FILE__, __LINE__, text + ": the receive buffer differs");
  }

 private:
  void place(char* out, char* in) {
    given_.out = out;
    given_.in = in;
    if (in_place_ && what_ == What::scatter)
      given_.in = MPI_IN_PLACE;
    else if (in_place_)
      given_.out = MPI_IN_PLACE;
  }

  What what_;
  int salt_;
  bool in_place_;
  std::size_t all_;
  DeviceBuffer out_, in_;
  std::vector<char> sent_, before_;
  Arguments given_;
};

struct Many {
  std::deque<Pending> pending;
  std::vector<MPI_Request> requests;
  MPI_Comm other = MPI_COMM_NULL;

  explicit Many(Wait wait = Wait::nonblocking) {
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    int salt = 0;
    for (const bool in_place : {false, true})
      for (const What what : kinds) {
        pending.emplace_back(what, salt % 2 ? long_count : small_count, salt, in_place,
                             salt % 3 ? MPI_COMM_WORLD : other);
        requests.emplace_back();
        CHECK_EQUAL(MPI_SUCCESS, pending.back().begin(&requests.back(), wait));
        ++salt;
      }
  }
  ~Many() { MPI_Comm_free(&other); }
  int count() const { return static_cast<int>(requests.size()); }
  void check() {
    for (Pending& each : pending) each.check();
  }
};

/// Calls an allreduce with device memory while `what` fails in the driver on all ranks. The first call that can return
/// the error must return it: the start if `going_in`, otherwise the wait.
void fails(Wait wait, const char* what, bool going_in) {
  const int count = 500, bytes = 4 * count;
  DeviceBuffer out(Kind::device, static_cast<std::size_t>(bytes)), in(Kind::device, static_cast<std::size_t>(bytes));
  const std::vector<char> ones = bytes_of(std::vector<int>(count, 1)), zeros(static_cast<std::size_t>(bytes), 0);
  const std::vector<char> sums = bytes_of(std::vector<int>(count, world_size()));
  out.write(ones);
  in.write(zeros);
  Arguments given;
  given.out = out.data();
  given.in = in.data();
  given.in_count = count;
  given.in_type = MPI_INT;
  given.op = MPI_SUM;
  given.comm = MPI_COMM_WORLD;
  for (const bool failing : {false, true, false}) {
    in.write(zeros);
    MPI_Request request;
    fail_cuda(failing && wait != Wait::persistent ? what : "");
    int error = call(What::allreduce, {wait, false, false}, given, &request);
    if (failing) fail_cuda(what);
    if (wait == Wait::persistent) {
      CHECK_EQUAL(MPI_SUCCESS, error);
      error = MPI_Start(&request);
    }
    if (wait != Wait::in_call) {
      CHECK_EQUAL(failing && going_in, error != MPI_SUCCESS);
      if (error == MPI_SUCCESS) error = MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    CHECK_EQUAL(failing ? MPI_ERR_OTHER : MPI_SUCCESS, error_class(error));
    fail_cuda("");
    // The persistent request still works.
    if (wait == Wait::persistent) {
      CHECK_EQUAL(MPI_SUCCESS, MPI_Start(&request));
      CHECK_EQUAL(MPI_SUCCESS, MPI_Wait(&request, MPI_STATUS_IGNORE));
      MPI_Request_free(&request);
    }
    CHECK(in.read() == (failing && wait != Wait::persistent ? zeros : sums));
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

/// Checks that a quantized call gives the same bits for host memory and for other kinds of memory. `exact`: the result
/// without quantization.
void same_codes(What what, const std::vector<float>& exact) {
  const int count = 3000;
  const auto all = static_cast<std::size_t>(count * (what == What::allgather ? world_size() : 1));
  std::vector<float> numbers(count);
  for (int i = 0; i < count; ++i)
    numbers[static_cast<std::size_t>(i)] = static_cast<float>(world_rank() + 1) + 0.001F * static_cast<float>(i % 701);
  std::vector<char> expected;
  for (const Kind kind : {Kind::host, Kind::device, Kind::managed}) {
    DeviceBuffer out(kind, 4 * static_cast<std::size_t>(count)), in(world_rank() % 2 ? kind : Kind::device, 4 * all);
    out.write(bytes_of(numbers));
    in.write(std::vector<char>(4 * all));
    Arguments given;
    given.out = out.data();
    given.in = in.data();
    given.out_count = given.in_count = count;
    given.out_type = given.in_type = MPI_FLOAT;
    given.op = MPI_SUM;
    given.comm = MPI_COMM_WORLD;
    CHECK_EQUAL(MPI_SUCCESS, complete(what, {}, given));
    if (kind == Kind::host) expected = in.read();
    CHECK(in.read() == expected);
  }
  CHECK(expected != bytes_of(exact));
}

}  // namespace

MPI_CASE(one_after_the_other) {
  for (const bool in_place : {false, true})
    for (const What what : kinds)
      for (int salt = 0; salt < 9; ++salt) {
        Pending pending(what, salt % 2 ? long_count : small_count, salt, in_place);
        MPI_Request none;
        CHECK_EQUAL(MPI_SUCCESS, pending.begin(&none, Wait::in_call));
        pending.check();
      }
}

MPI_CASE(all_waited_for_together) {
  Many many;
  MPI_Waitall(many.count(), many.requests.data(), MPI_STATUSES_IGNORE);
  many.check();
}

MPI_CASE(waited_for_in_reverse_order) {
  Many many;
  for (int i = many.count() - 1; i >= 0; --i) MPI_Wait(&many.requests[static_cast<std::size_t>(i)], MPI_STATUS_IGNORE);
  many.check();
}

MPI_CASE(tested) {
  Many many;
  for (int left = many.count(); left > 0;)
    for (MPI_Request& request : many.requests) {
      int flag = 0;
      if (request != MPI_REQUEST_NULL) MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
      if (flag) MPI_Test(&request, &flag, MPI_STATUS_IGNORE), left -= flag;
    }
  many.check();
}

MPI_CASE(started_again) {
  Many many(Wait::persistent);
  for (int start = 0; start < 3; ++start) {
    for (Pending& each : many.pending) each.write(start);
    if (start == 1)
      for (MPI_Request& request : many.requests) MPI_Start(&request);
    else
      MPI_Startall(many.count(), many.requests.data());
    MPI_Waitall(many.count(), many.requests.data(), MPI_STATUSES_IGNORE);
    many.check();
  }
  for (MPI_Request& request : many.requests) MPI_Request_free(&request);
}

// Ranks in the MPI library's scan must progress the collective for the ranks that wait for the collective first.
MPI_CASE(a_staged_collective_of_the_library_while_pending) {
  for (const bool odd : {false, true}) {
    Pending pending(What::alltoall, 1 << 20, 4);  // more than is transferred at a time
    MPI_Request request;
    CHECK_EQUAL(MPI_SUCCESS, pending.begin(&request));
    const DeviceBuffer numbers(Kind::device, 4);
    numbers.write(bytes_of(std::vector<int>{1}));
    const bool early = (world_rank() % 2 == 1) == odd;
    if (!early) MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK_EQUAL(MPI_SUCCESS, MPI_Scan(MPI_IN_PLACE, numbers.data(), 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(numbers.read() == bytes_of(std::vector<int>{world_rank() + 1}));
    if (early) MPI_Wait(&request, MPI_STATUS_IGNORE);
    pending.check();
  }
}

// Only rank 0 has decoded the type, because it used it with device memory. All ranks must still choose the MPI library.
MPI_CASE(a_type_that_is_not_committed) {
  MPI_Datatype real = MPI_DATATYPE_NULL;
  MPI_Type_create_f90_real(6, 30, &real);
  const int count = 1000;
  const std::vector<char> numbers = bytes_of(std::vector<float>(count, 2.5F)), zeros(numbers.size());
  const DeviceBuffer from(Kind::device, numbers.size()), to(Kind::device, numbers.size()),
      given(world_rank() == 0 ? Kind::device : Kind::host, numbers.size());
  from.write(numbers);
  to.write(zeros);
  if (world_rank() == 0)
    MPI_Sendrecv(from.data(), count, real, 0, 0, to.data(), count, real, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  given.write(world_rank() == 0 ? to.read() : zeros);
  CHECK_EQUAL(MPI_SUCCESS, MPI_Bcast(given.data(), count, real, 0, MPI_COMM_WORLD));
  CHECK(given.read() == numbers);
}

MPI_CASE(the_driver_fails) {
  const ReturnErrors on_world(MPI_COMM_WORLD);
  for (const Wait wait : every_wait) {
    fails(wait, "cuMemcpyDtoHAsync_v2:1+:999", true);
    fails(wait, "cuMemcpyHtoDAsync_v2:1+:999", false);
  }
}

MPI_CASE(quantized) {
  std::vector<float> gathered, sums(3000);
  for (int rank = 0; rank < world_size(); ++rank)
    for (int i = 0; i < 3000; ++i) {
      const float number = static_cast<float>(rank + 1) + 0.001F * static_cast<float>(i % 701);
      gathered.push_back(number);
      sums[static_cast<std::size_t>(i)] += number;
    }
  same_codes(What::allgather, gathered);
  same_codes(What::allreduce, sums);
}

int main(int argc, char** argv) {
  if (argc < 2 || std::strcmp(argv[1], "--list") != 0)
    if (!start_cuda()) return 1;
  return run_cases(argc, argv);
}
