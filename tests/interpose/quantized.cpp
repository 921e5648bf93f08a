// SPDX-License-Identifier: Apache-2.0
// Quantized collectives in a job of several nodes: which calls are quantized, the error of the results, and that
// nothing is quantized unless requested. Four ranks on two nodes, round robin.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/support/harness.hpp"

#include "base/profiling_names.hpp"  // after mpi.h

using namespace bestride::test;

namespace {

constexpr int count = 5003;  ///< numbers in a rank's block

constexpr double largest = 200.0 / 64;
/// Numbers of both signs with magnitudes up to `largest`, different on each rank. Their 8 significant bits are exact in
/// bfloat16, but not in int8 codes.
template <class Number>
Number number(int rank, int i) {
  return static_cast<Number>((i * 37 + rank * 101 + i / 7 * 13) % 401 - 200) / 64;
}
std::uint16_t bfloat16(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<std::uint16_t>(bits >> 16);
}
float from_bfloat16(std::uint16_t half) {
  const std::uint32_t bits = std::uint32_t{half} << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

template <class Number>
MPI_Datatype type_of() {
  if constexpr (sizeof(Number) == 8) return MPI_DOUBLE;
  if constexpr (sizeof(Number) == 4) return MPI_FLOAT;
  return MPI_UINT16_T;
}

enum class Wanted { exact, approximate };

/// Approximate: every number is within `bound` of the exact one, and at least one differs. Exact: the bits are equal.
template <class Number>
void check(Wanted wanted, const std::vector<Number>& got, const std::vector<Number>& exact, double bound) {
  if (wanted == Wanted::exact) {
    CHECK_EQUAL(0, std::memcmp(got.data(), exact.data(), got.size() * sizeof(Number)));
    return;
  }
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i)
    worst = std::max(worst, std::fabs(static_cast<double>(got[i]) - static_cast<double>(exact[i])));
  CHECK(worst > 0);
  CHECK(worst <= bound);
}

/// Checks that all ranks have the same bytes.
template <class Number>
void check_alike(const std::vector<Number>& mine) {
  std::vector<Number> first = mine;
  PMPI_Bcast(first.data(), static_cast<int>(first.size() * sizeof(Number)), MPI_BYTE, 0, MPI_COMM_WORLD);
  CHECK_EQUAL(0, std::memcmp(first.data(), mine.data(), mine.size() * sizeof(Number)));
}

template <class Number>
std::vector<Number> own_block() {
  std::vector<Number> block(count);
  for (int i = 0; i < count; ++i) block[static_cast<std::size_t>(i)] = number<Number>(world_rank(), i);
  return block;
}
template <class Number>
std::vector<Number> own_vector() {
  std::vector<Number> all;
  for (int part = 0; part < world_size(); ++part)
    for (int i = 0; i < count; ++i) all.push_back(number<Number>(world_rank() + part, i));
  return all;
}

/// The largest error of quantizing numbers once, with magnitudes up to `most`.
constexpr double coding(double most, int top) { return most / (2 * top) * 1.001; }

enum class AllgatherForm { blocking, in_place, nonblocking, varying, strided };

template <class Number>
void allgather(Wanted wanted, MPI_Comm comm, AllgatherForm form = AllgatherForm::blocking) {
  const MPI_Datatype type = type_of<Number>();
  const std::vector<Number> own = own_block<Number>();
  std::vector<Number> exact(own.size() * static_cast<std::size_t>(world_size())), got(exact.size());
  PMPI_Allgather(own.data(), count, type, exact.data(), count, type, comm);
  if (form == AllgatherForm::blocking) MPI_Allgather(own.data(), count, type, got.data(), count, type, comm);
  if (form == AllgatherForm::in_place) {
    std::copy(own.begin(), own.end(), got.begin() + world_rank() * count);
    MPI_Allgather(MPI_IN_PLACE, 0, type, got.data(), count, type, comm);
  }
  if (form == AllgatherForm::nonblocking) {
    MPI_Request request;
    MPI_Iallgather(own.data(), count, type, got.data(), count, type, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  if (form == AllgatherForm::varying) {
    std::vector<int> counts(static_cast<std::size_t>(world_size()), count), at;
    for (int rank = 0; rank < world_size(); ++rank) at.push_back(rank * count);
    MPI_Allgatherv(own.data(), count, type, got.data(), counts.data(), at.data(), type, comm);
  }
  if (form == AllgatherForm::strided) {
    // Only odd ranks use a strided type. The packed numbers are the same, so all ranks must decide alike on quantizing.
    if (world_rank() % 2) {
      MPI_Datatype strided, spaced;
      MPI_Type_vector(count, 1, 2, type, &strided);
      MPI_Type_create_resized(strided, 0, 2 * count * static_cast<MPI_Aint>(sizeof(Number)), &spaced);
      MPI_Type_commit(&spaced);
      std::vector<Number> sent(2 * own.size()), received(2 * exact.size());
      for (std::size_t i = 0; i < own.size(); ++i) sent[2 * i] = own[i];
      MPI_Allgather(sent.data(), 1, spaced, received.data(), 1, spaced, comm);
      for (std::size_t i = 0; i < got.size(); ++i) got[i] = received[2 * i];
      MPI_Type_free(&spaced);
      MPI_Type_free(&strided);
    } else {
      MPI_Allgather(own.data(), count, type, got.data(), count, type, comm);
    }
  }
  check(wanted, got, exact, coding(largest, 127));
  check_alike(got);
}

/// The largest error of a sum: the sum of the other node's two ranks is quantized once.
double added(int top) { return coding(2 * largest, top); }

template <class Number>
void reduce_scatter(Wanted wanted, MPI_Comm comm, int top, bool in_place = false) {
  std::vector<Number> given = own_vector<Number>();
  std::vector<Number> exact(count), got(count);
  PMPI_Reduce_scatter_block(given.data(), exact.data(), count, type_of<Number>(), MPI_SUM, comm);
  if (in_place) {
    MPI_Reduce_scatter_block(MPI_IN_PLACE, given.data(), count, type_of<Number>(), MPI_SUM, comm);
    std::copy_n(given.begin(), count, got.begin());
  } else {
    MPI_Reduce_scatter_block(given.data(), got.data(), count, type_of<Number>(), MPI_SUM, comm);
  }
  check(wanted, got, exact, added(top));
}

template <class Number>
void allreduce(Wanted wanted, MPI_Comm comm, int top, bool in_place = false) {
  const std::vector<Number> given = own_vector<Number>();
  std::vector<Number> exact(given.size()), got(given);
  PMPI_Allreduce(given.data(), exact.data(), static_cast<int>(given.size()), type_of<Number>(), MPI_SUM, comm);
  MPI_Allreduce(in_place ? MPI_IN_PLACE : given.data(), got.data(), static_cast<int>(given.size()), type_of<Number>(),
                MPI_SUM, comm);
  check(wanted, got, exact, added(top) + coding(4 * largest + added(top), 127));
  check_alike(got);
}

/// Calls that are never approximate.
void exact_calls(MPI_Comm comm) {
  std::vector<int> whole(count, world_rank()), got(static_cast<std::size_t>(4 * count)), exact(got.size());
  PMPI_Allgather(whole.data(), count, MPI_INT, exact.data(), count, MPI_INT, comm);
  MPI_Allgather(whole.data(), count, MPI_INT, got.data(), count, MPI_INT, comm);
  CHECK(got == exact);
  const std::vector<float> given = own_vector<float>();
  std::vector<float> most(given.size()), expected(given.size());
  PMPI_Allreduce(given.data(), expected.data(), static_cast<int>(given.size()), MPI_FLOAT, MPI_MAX, comm);
  MPI_Allreduce(given.data(), most.data(), static_cast<int>(given.size()), MPI_FLOAT, MPI_MAX, comm);
  CHECK(most == expected);
  std::vector<float> copy = own_block<float>();
  std::vector<float> root = copy;
  PMPI_Bcast(root.data(), count, MPI_FLOAT, 1, comm);
  MPI_Bcast(copy.data(), count, MPI_FLOAT, 1, comm);
  CHECK(copy == root);
}

void all_calls(Wanted wanted, MPI_Comm comm, int top) {
  for (const AllgatherForm form : {AllgatherForm::blocking, AllgatherForm::in_place, AllgatherForm::nonblocking,
                                   AllgatherForm::varying, AllgatherForm::strided}) {
    allgather<float>(wanted, comm, form);
    allgather<double>(wanted, comm, form);
  }
  for (const bool in_place : {false, true}) {
    reduce_scatter<float>(wanted, comm, top, in_place);
    reduce_scatter<double>(wanted, comm, top, in_place);
    allreduce<float>(wanted, comm, top, in_place);
    allreduce<double>(wanted, comm, top, in_place);
  }
  exact_calls(comm);
}

struct Info {
  Info(const char* key, const char* value) {
    MPI_Info_create(&handle);
    MPI_Info_set(handle, key, value);
  }
  ~Info() { MPI_Info_free(&handle); }
  Info(const Info&) = delete;
  Info& operator=(const Info&) = delete;
  MPI_Info handle = MPI_INFO_NULL;
};

void set(MPI_Comm comm, const char* key, const char* value) {
  const Info info(key, value);
  MPI_Comm_set_info(comm, info.handle);
}

/// A user-defined operation that adds bfloat16 numbers.
void add_bfloat16(void* in, void* inout, int* length, MPI_Datatype*) {
  auto* from = static_cast<std::uint16_t*>(in);
  auto* to = static_cast<std::uint16_t*>(inout);
  for (int i = 0; i < *length; ++i) to[i] = bfloat16(from_bfloat16(to[i]) + from_bfloat16(from[i]));
}

/// Gathers 16-bit integers and adds them by a user-defined operation. Returns the errors of the results as bfloat16.
struct Off {
  double gathered = 0, added = 0;
};
Off as_bfloat16(MPI_Comm comm, MPI_Op op) {
  std::vector<std::uint16_t> own(count), all(static_cast<std::size_t>(4 * count)), mine(count);
  for (int i = 0; i < count; ++i) own[static_cast<std::size_t>(i)] = bfloat16(number<float>(world_rank(), i));
  MPI_Allgather(own.data(), count, MPI_UINT16_T, all.data(), count, MPI_UINT16_T, comm);
  Off off;
  for (int rank = 0; rank < 4; ++rank)
    for (int i = 0; i < count; ++i)
      off.gathered = std::max<double>(
          off.gathered,
          std::fabs(from_bfloat16(all[static_cast<std::size_t>(rank * count + i)]) - number<float>(rank, i)));
  std::vector<std::uint16_t> given;
  for (int part = 0; part < 4; ++part) given.insert(given.end(), own.begin(), own.end());
  MPI_Reduce_scatter_block(given.data(), mine.data(), count, MPI_UINT16_T, op, comm);
  for (int i = 0; i < count; ++i) {
    float sum = 0;
    for (int rank = 0; rank < 4; ++rank) sum += number<float>(rank, i);
    off.added = std::max<double>(off.added, std::fabs(from_bfloat16(mine[static_cast<std::size_t>(i)]) - sum));
  }
  return off;
}

}  // namespace

MPI_CASE(off_by_default) { all_calls(Wanted::exact, MPI_COMM_WORLD, 0); }

MPI_CASE(int4_by_variable) { all_calls(Wanted::approximate, MPI_COMM_WORLD, 7); }

MPI_CASE(int8_by_variable) { all_calls(Wanted::approximate, MPI_COMM_WORLD, 127); }

MPI_CASE(info_key_applies_to_its_communicator) {
  const Info info("bestride_quantize", "int4");
  MPI_Comm coded, plain;
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, info.handle, &coded);
  MPI_Comm_dup(MPI_COMM_WORLD, &plain);
  all_calls(Wanted::approximate, coded, 7);
  all_calls(Wanted::exact, plain, 0);
  all_calls(Wanted::exact, MPI_COMM_WORLD, 0);
  set(coded, "bestride_quantize", "int8");
  all_calls(Wanted::approximate, coded, 127);
  // Setting another key does not change this one.
  set(coded, "no_such_key", "1");
  all_calls(Wanted::approximate, coded, 127);
  set(coded, "bestride_quantize", "off");
  all_calls(Wanted::exact, coded, 0);
  set(plain, "bestride_quantize", "int8");
  allgather<float>(Wanted::approximate, plain);
  MPI_Comm_free(&coded);
  MPI_Comm_free(&plain);
}

MPI_CASE(members_with_different_keys_are_exact) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  set(comm, world_rank() == 2 ? "bestride_quantize" : "no_such_key", "int8");
  all_calls(Wanted::exact, comm, 0);
  set(comm, "bestride_quantize", world_rank() == 1 ? "int4" : "int8");
  all_calls(Wanted::exact, comm, 0);
  set(comm, "bestride_quantize", world_rank() == 0 ? "int5" : "int8");
  // An error on one member is local; the others do not wait for that member.
  {
    const ReturnErrors returned(comm), also(MPI_COMM_WORLD);  // MPICH checks the info before the communicator
    const Info info("bestride_quantize", "int8");
    const int error = MPI_Comm_set_info(comm, world_rank() == 1 ? MPI_INFO_NULL : info.handle);
    CHECK_EQUAL(world_rank() == 1, error != MPI_SUCCESS);
    allgather<float>(Wanted::exact, comm);
  }
  MPI_Comm_free(&comm);
}

MPI_CASE(bfloat16_in_integers) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Op op;
  MPI_Op_create(add_bfloat16, 1, &op);
  const double exactly = as_bfloat16(MPI_COMM_WORLD, op).added;
  set(comm, "bestride_quantize", "int8");
  Off off = as_bfloat16(comm, op);
  CHECK_EQUAL(0.0, off.gathered);
  CHECK_EQUAL(exactly, off.added);
  set(comm, "bestride_format", "bfloat16");
  off = as_bfloat16(comm, op);
  CHECK(off.gathered > 0 && off.gathered <= coding(largest, 127) + largest / 256);
  // The result is rounded to 8 bits once, not at each addition.
  CHECK(off.added > 0 && off.added <= added(127) + 4 * largest / 256);
  // A predefined sum still treats the values as integers.
  std::vector<std::uint16_t> given(4 * count, 0x3F81), got(count);
  MPI_Reduce_scatter_block(given.data(), got.data(), count, MPI_UINT16_T, MPI_SUM, comm);
  CHECK_EQUAL(std::uint16_t{(4 * 0x3F81) & 0xFFFF}, got[17]);
  set(comm, "bestride_format", "none");
  CHECK_EQUAL(0.0, as_bfloat16(comm, op).gathered);
  MPI_Op_free(&op);
  MPI_Comm_free(&comm);
}

/// A sum over four ranks in which the hierarchy uses another order than the MPI library: (0 + 1) + (2 + 3), in which
/// both ones are lost to rounding.
void check_order(MPI_Comm comm, bool reassociated) {
  const float values[] = {1e8f, 1, -1e8f, 1};
  std::vector<float> given(4 * count, values[world_rank()]), got(count, -1), exact(count);
  MPI_Reduce_scatter_block(given.data(), got.data(), count, MPI_FLOAT, MPI_SUM, comm);
  PMPI_Reduce_scatter_block(given.data(), exact.data(), count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  CHECK((values[0] + values[1]) + (values[2] + values[3]) != exact[0]);  // otherwise the test is void
  if (reassociated)
    CHECK_EQUAL((values[0] + values[1]) + (values[2] + values[3]), got[count / 2]);
  else
    CHECK(got == exact);
}

MPI_CASE(reassociate_by_info_key) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  set(comm, "bestride_reassociate", "1");
  check_order(comm, true);
  check_order(MPI_COMM_WORLD, false);
  MPI_Comm_free(&comm);
}

#if MPI_VERSION >= 4
/// Members exchange their keys in the first blocking collective. The key has no effect if one member lacks it.
MPI_CASE(reassociate_by_info_key_of_idup) {
  for (const bool all : {true, false}) {
    const Info info("bestride_reassociate", "1");
    MPI_Comm comm;
    MPI_Request request;
    MPI_Comm_idup_with_info(MPI_COMM_WORLD, all || world_rank() != 1 ? info.handle : MPI_INFO_NULL, &comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check_order(comm, all);
    MPI_Comm_free(&comm);
  }
}
#endif

int main(int argc, char** argv) { return run_cases(argc, argv); }
