// SPDX-License-Identifier: Apache-2.0
// Sums of floating-point numbers without permission to reorder them. After some calls Bestride finds out whether the
// MPI library adds in the same order; each result is compared, bit for bit, with that of the library's own function,
// which nothing intercepts.
//
// TEST_ORDER=same: after 16 calls (none if BESTRIDE_FORCE=sum_order=first) no sum of float or double reaches the MPI
// library (and two more on a communicator that has no shared memory yet). different: all of them do.
#include <algorithm>
#include <cfenv>
#include <complex>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tests/hierarchical/job.hpp"
#include "tests/support/harness.hpp"

using namespace bestride::test;

namespace {

constexpr int calls = 30, calls_without_memory = 2;

int calls_before() {
  const char* order = std::getenv("BESTRIDE_FORCE");
  return order && std::string_view(order) == "sum_order=first" ? 0 : 16;
}

enum class Order { any, same, different };
Order expected_order() {
  const char* text = std::getenv("TEST_ORDER");
  const std::string_view order = text ? text : "";
  return order == "same" ? Order::same : order == "different" ? Order::different : Order::any;
}

struct Kind {
  const char* name;
  MPI_Datatype type;
  int numbers;  ///< numbers of one element
  bool single, extended;
};
const Kind kinds[] = {{"double", MPI_DOUBLE, 1, false, false},
                      {"float", MPI_FLOAT, 1, true, false},
                      {"double complex", MPI_C_DOUBLE_COMPLEX, 2, false, false},
                      {"float complex", MPI_C_FLOAT_COMPLEX, 2, true, false},
                      {"long double", MPI_LONG_DOUBLE, 1, false, true}};

template <class Number>
void put(std::vector<std::byte>& bytes, std::size_t numbers, std::mt19937_64& random) {
  std::uniform_real_distribution<double> mantissa(-1, 1);
  bytes.assign(numbers * sizeof(Number), std::byte{});
  for (std::size_t i = 0; i < numbers; ++i) {
    const auto value = static_cast<Number>(mantissa(random)) * static_cast<Number>(1 << random() % 20);
    std::memcpy(bytes.data() + i * sizeof value, &value, std::is_same_v<Number, long double> ? 10 : sizeof value);
  }
}

/// One reduction, again and again.
struct Repeated {
  Kind kind;
  int count;
  int root = -1;  ///< -1: MPI_Allreduce
  MPI_Op op = MPI_SUM;
  bool in_place = false;
  bool large = false;  ///< the _c function

  std::string text() const {
    return std::string(kind.name) + " x " + std::to_string(count) + " to " + std::to_string(root) +
           (in_place ? " in place" : "") + (large ? " large" : "");
  }
  bool may_be_taken() const { return op == MPI_SUM && !kind.extended; }
};

/// Returns how many of the calls have reached the library.
int run(const Repeated& it, MPI_Comm comm, unsigned seed) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  const bool receives = it.root < 0 || rank == it.root;
  std::mt19937_64 random(seed + static_cast<unsigned>(rank) * 7919u);
  const auto numbers = static_cast<std::size_t>(it.count * it.kind.numbers);
  static const auto allreduce = reinterpret_cast<decltype(&PMPI_Allreduce)>(library_function("PMPI_Allreduce"));
  static const auto reduce = reinterpret_cast<decltype(&PMPI_Reduce)>(library_function("PMPI_Reduce"));
  int reached = 0;
  for (int call = 0; call < calls; ++call) {
    std::vector<std::byte> own;
    it.kind.extended ? put<long double>(own, numbers, random)
    : it.kind.single ? put<float>(own, numbers, random)
                     : put<double>(own, numbers, random);
    std::vector<std::byte> got(own.size()), expected(own.size());
    const void* send = own.data();
    if (it.in_place && receives) got = own, send = MPI_IN_PLACE;
    const int before = calls_seen_by_library();
    int error = 0;
    if (it.root < 0)
      error = it.large ? MPI_Allreduce_c(send, got.data(), it.count, it.kind.type, it.op, comm)
                       : MPI_Allreduce(send, got.data(), it.count, it.kind.type, it.op, comm);
    else
      error = it.large ? MPI_Reduce_c(send, got.data(), it.count, it.kind.type, it.op, it.root, comm)
                       : MPI_Reduce(send, got.data(), it.count, it.kind.type, it.op, it.root, comm);
    reached += calls_seen_by_library() - before;
    CHECK_EQUAL(MPI_SUCCESS, error);
    if (it.root < 0)
      allreduce(own.data(), expected.data(), it.count, it.kind.type, it.op, comm);
    else
      reduce(own.data(), expected.data(), it.count, it.kind.type, it.op, it.root, comm);
    if (receives && std::memcmp(got.data(), expected.data(), got.size()) != 0)
      fail_check(__FILE__, __LINE__, it.text() + ", call " + std::to_string(call) + ": other bits than the library's");
  }
  return reached;
}

/// `first`: of a communicator that has no shared memory yet.
void check(const Repeated& it, MPI_Comm comm, bool first) {
  const int reached = run(it, comm, static_cast<unsigned>(it.count) * 31u + 5u);
  const Order order = expected_order();
  if (!it.may_be_taken() || order == Order::different) {
    CHECK_EQUAL(calls, reached);
  } else if (order == Order::same) {
    if (reached != calls_before() && reached != calls_before() + (first ? calls_without_memory : 0))
      fail_check(__FILE__, __LINE__, it.text() + ": " + std::to_string(reached) + " calls reached the library");
  }
}

}  // namespace

/// Every type, in a communicator of its own, because one remembers sixteen sizes.
MPI_CASE(every_type) {
  for (const Kind& kind : kinds) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    bool first = true;
    for (const int count : {1024, 1025, 3000, 40'000}) {
      check({kind, count}, comm, first);
      first = false;
    }
    MPI_Comm_free(&comm);
  }
}

MPI_CASE(reduce_to_each_root) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (int root = 0; root < std::min(world_size(), 3); ++root) {
    // With another root the library may add in another order.
    const Repeated it{kinds[0], 2000, root};
    root == 0 ? check(it, comm, true) : static_cast<void>(run(it, comm, 3));
  }
  MPI_Comm_free(&comm);
}

/// In place and by the large function: the same entry as the plain call.
MPI_CASE(forms) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  check({kinds[0], 900, -1, MPI_SUM, true}, comm, true);
  for (const Repeated& it : {Repeated{kinds[0], 900, -1, MPI_SUM, false, true}, Repeated{kinds[0], 900}}) {
    const int reached = run(it, comm, 17);
    if (expected_order() == Order::same) CHECK_EQUAL(0, reached);
  }
  MPI_Comm_free(&comm);
}

/// Short sums, whose order is tried many times, and a product, which is always left to the library.
MPI_CASE(short_sums_and_products) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  bool first = true;
  for (const int count : {1, 7, 8, 100}) {
    run({kinds[0], count}, comm, 23);
    check({kinds[0], 3000 + count, -1, MPI_PROD}, comm, first);
    first = false;
  }
  MPI_Comm_free(&comm);
}

/// A communicator remembers sixteen sizes; the next one is left to the library.
MPI_CASE(many_sizes) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (int i = 0; i < 16; ++i) check({kinds[0], 1000 + i}, comm, i == 0);
  CHECK_EQUAL(calls, run({kinds[0], 2000}, comm, 29));
  // More than 8 MiB.
  if (world_size() <= 2) {
    MPI_Comm other;
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    CHECK_EQUAL(calls, run({kinds[1], (8 << 20) / 4 + 1}, other, 31));
    MPI_Comm_free(&other);
  }
  MPI_Comm_free(&comm);
}

/// The program rounds upwards. A progress thread that carries out a part of the sum must do the same. It is awake
/// because a nonblocking collective is pending, which rank 0 starts last.
MPI_CASE(another_rounding_mode) {
  MPI_Comm comm, other;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  std::vector<int> own(20'000, world_rank()), all(own.size() * static_cast<std::size_t>(world_size()));
  const int count = static_cast<int>(own.size());
  MPI_Request request = MPI_REQUEST_NULL;
  const auto start = [&] { MPI_Iallgather(own.data(), count, MPI_INT, all.data(), count, MPI_INT, other, &request); };
  if (world_rank() != 0) start();
  std::fesetround(FE_UPWARD);
  check({kinds[0], 100'000}, comm, true);
  check({kinds[1], 5000}, comm, false);
  std::fesetround(FE_TONEAREST);
  if (world_rank() == 0) start();
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK_EQUAL(world_size() - 1, all.back());
  MPI_Comm_free(&comm);
  MPI_Comm_free(&other);
}

int main(int argc, char** argv) { return run_cases(argc, argv); }
