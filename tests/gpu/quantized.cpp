// SPDX-License-Identifier: Apache-2.0
// Quantized collectives give the same bits for buffers in device memory as in host memory, in every form and for every
// combination of memories on the ranks.
#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/quantize/quantize.hpp"
#include "tests/gpu/device_buffer.hpp"
#include "tests/hierarchical/calls.hpp"
#include "tests/hierarchical/job.hpp"
#include "tests/support/harness.hpp"
#include "tests/support/random.hpp"

using namespace bestride;
using namespace bestride::test;
using Bytes = std::vector<char>;
using Memory = Kind;

namespace {

constexpr What gathers[] = {What::allgather, What::allgatherv};
constexpr What whats[] = {What::allgather, What::allgatherv, What::allreduce, What::reduce_scatter,
                          What::reduce_scatter_block};
constexpr NumberFormat formats[] = {NumberFormat::float32, NumberFormat::float64, NumberFormat::float16,
                                    NumberFormat::bfloat16};
constexpr const char* format_names[] = {"float32", "float64", "float16", "bfloat16"};
constexpr int fraction_bits[] = {23, 52, 10, 7}, exponent_bits[] = {8, 11, 5, 8};
bool is_gather(What what) { return what == What::allgather || what == What::allgatherv; }

/// A communicator whose numbers of one format are quantized to `bits`.
class Coded {
 public:
  Coded(NumberFormat given, CodeBits bits) : format(given) {
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "bestride_quantize", bits == CodeBits::int8 ? "int8" : "int4");
    if (number_bytes(format) == 2)
      MPI_Info_set(info, "bestride_format", format == NumberFormat::bfloat16 ? "bfloat16" : "half");
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
    MPI_Info_free(&info);
    type = format == NumberFormat::float32 ? MPI_FLOAT : format == NumberFormat::float64 ? MPI_DOUBLE : MPI_UINT16_T;
    MPI_Op_create([](void*, void*, int*, MPI_Datatype*) {}, 1, &own_op_);
    op = number_bytes(format) == 2 ? own_op_ : MPI_SUM;
    text = std::string(format_names[static_cast<int>(format)]) + (bits == CodeBits::int8 ? " int8" : " int4");
  }
  ~Coded() {
    MPI_Op_free(&own_op_);
    MPI_Comm_free(&comm);
  }
  Coded(const Coded&) = delete;
  Coded& operator=(const Coded&) = delete;

  const NumberFormat format;
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Op op = MPI_OP_NULL;
  std::string text;

 private:
  MPI_Op own_op_ = MPI_OP_NULL;
};

/// Numbers that differ between ranks, with some infinities, and some NaNs if they are gathered.
Bytes numbers_of(What what, NumberFormat format, std::int64_t count, int salt) {
  Random random(static_cast<std::uint64_t>(salt * 1000 + world_rank()));
  const int fraction = fraction_bits[static_cast<int>(format)], exponent = exponent_bits[static_cast<int>(format)];
  const auto ones = [](int bits) { return (std::uint64_t{1} << bits) - 1; };
  const std::int64_t size = number_bytes(format);
  Bytes numbers(static_cast<std::size_t>(count * size));
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint64_t bits = (ones(exponent - 1) - random.bits() % 6) << fraction | (random.bits() & ones(fraction)) |
                         (random.bits() & 1) << (fraction + exponent);
    if (i % 700 == 650) bits = ones(exponent) << fraction | (is_gather(what) && i % 1400 == 650 ? 1 : 0);
    std::memcpy(numbers.data() + i * size, &bits, static_cast<std::size_t>(size));
  }
  return numbers;
}

/// The parameters of a call except the memory of its buffers.
struct Call {
  What what = What::allgather;
  int count = 0;
  bool in_place = false;
  Wait wait = Wait::in_call;
  bool large = false;
  bool strided_out = false, strided_in = false;  ///< every second number; gathers only
  int misplaced = 0;                             ///< offset from an aligned address, in bytes
  int salt = 0;
};

/// A type of `count` numbers, each followed by a gap of one number.
class Strided {
 public:
  Strided(MPI_Datatype type, int count, int number) {
    MPI_Type_vector(count, 1, 2, type, &vector_);
    MPI_Type_create_resized(vector_, 0, MPI_Aint{2} * count * number, &type_);
    MPI_Type_commit(&type_);
  }
  ~Strided() {
    MPI_Type_free(&type_);
    MPI_Type_free(&vector_);
  }
  Strided(const Strided&) = delete;
  Strided& operator=(const Strided&) = delete;
  MPI_Datatype handle() const { return type_; }

 private:
  MPI_Datatype vector_ = MPI_DATATYPE_NULL, type_ = MPI_DATATYPE_NULL;
};

/// Runs a call. Returns the contents of both buffers after each start.
std::vector<Bytes> run(const Call& given, const Coded& coded, Memory out_memory, Memory in_memory) {
  const int ranks = world_size(), rank = world_rank(), number = static_cast<int>(number_bytes(coded.format));
  const bool spread_input = given.what == What::reduce_scatter || given.what == What::reduce_scatter_block;
  // Unequal blocks in descending order of ranks, one of them empty, each followed by a gap.
  std::vector<int> counts(static_cast<std::size_t>(ranks), given.count), at(counts.size());
  if (given.what == What::allgatherv || given.what == What::reduce_scatter)
    for (int r = 0; r < ranks; ++r) counts[static_cast<std::size_t>(r)] = r == 1 ? 0 : given.count + 19 * r;
  int places = 0, sum = 0;
  for (int r = ranks - 1; r >= 0; --r) {
    at[static_cast<std::size_t>(r)] = places;
    places += counts[static_cast<std::size_t>(r)] + (given.what == What::allgatherv ? 5 : 0);
    sum += counts[static_cast<std::size_t>(r)];
  }
  const int own = counts[static_cast<std::size_t>(rank)];
  const int sent = spread_input ? sum : own;
  const int received = is_gather(given.what) ? places : spread_input ? (given.in_place ? sum : own) : own;
  const auto bytes_for = [&](int numbers, bool strided) {
    return static_cast<std::size_t>(std::max(1, numbers) * number * (strided ? 2 : 1) + given.misplaced);
  };
  const DeviceBuffer out(out_memory, bytes_for(sent, given.strided_out)),
      in(in_memory, bytes_for(received, given.strided_in));
  // A type of one number with a gap, so that counts and displacements stay the same.
  std::unique_ptr<Strided> gapped;
  if (given.strided_out || given.strided_in) gapped = std::make_unique<Strided>(coded.type, 1, number);

  Arguments arguments;
  arguments.out = given.in_place ? MPI_IN_PLACE : out.data() + given.misplaced;
  arguments.in = in.data() + given.misplaced;
  arguments.out_count = sent;
  arguments.in_count = given.what == What::allgather || spread_input ? given.count : own;
  arguments.out_type = given.strided_out ? gapped->handle() : coded.type;
  arguments.in_type = given.strided_in ? gapped->handle() : coded.type;
  arguments.op = coded.op;
  arguments.comm = coded.comm;
  arguments.give_counts(counts, at);

  const auto write = [&](int start) {
    const Bytes numbers = numbers_of(given.what, coded.format, sent, given.salt + 50 * start);
    const auto put = [&](Bytes& to, int first, bool strided) {
      for (int i = 0; i < sent; ++i)
        std::memcpy(to.data() + given.misplaced + (first + i) * number * (strided ? 2 : 1), numbers.data() + i * number,
                    static_cast<std::size_t>(number));
    };
    Bytes there(bytes_for(received, given.strided_in), '\x37'), given_out(bytes_for(sent, given.strided_out), '\x5a');
    const int block = given.what == What::allgatherv  ? at[static_cast<std::size_t>(rank)]
                      : given.what == What::allgather ? rank * given.count
                                                      : 0;
    if (given.in_place) put(there, block, given.strided_in);
    put(given_out, 0, given.strided_out);
    in.write(there);
    out.write(given_out);
  };
  std::vector<Bytes> results;
  const auto keep = [&](int error) {
    CHECK_EQUAL(MPI_SUCCESS, error);
    results.push_back(in.read());
    // The rest of the buffer is undefined after an in-place reduce-scatter.
    if (spread_input && given.in_place) results.back().resize(bytes_for(own, false));
    results.push_back(out.read());
  };
  write(0);
  MPI_Request request;
  const Watch watch(group_of("", coded.comm, true), true, Wait::nonblocking);
  int error = call(given.what, {given.wait, given.large, false}, arguments, &request);
  if (given.wait == Wait::in_call) {
    keep(error);
  } else if (given.wait == Wait::nonblocking) {
    keep(error != MPI_SUCCESS ? error : MPI_Wait(&request, MPI_STATUS_IGNORE));
  } else {
    for (int start = 0; start < 2 && error == MPI_SUCCESS; ++start) {
      if (start > 0) write(start);
      error = MPI_Start(&request);
      keep(error != MPI_SUCCESS ? error : MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    MPI_Request_free(&request);
  }
  CHECK_EQUAL("", watch.verdict());
  return results;
}

std::string text_of(const Call& given, const Coded& coded) {
  return std::string(name(given.what)) + " " + name(Form{given.wait, given.large}) + ", " + coded.text + ", " +
         std::to_string(given.count) + (given.in_place ? ", in place" : "") +
         (given.strided_out ? ", strided out" : "") + (given.strided_in ? ", strided in" : "");
}

/// The memory of this rank's two buffers: device memory on all ranks, or on even ranks only, or for one of the two
/// buffers; managed memory; or a mix.
struct Placing {
  Memory out, in;
};
constexpr int placings = 5;
Placing placing(int which) {
  const bool even = world_rank() % 2 == 0;
  switch (which) {
    case 0: return {Memory::device, Memory::device};
    case 1: return even ? Placing{Memory::device, Memory::device} : Placing{Memory::host, Memory::host};
    case 2: return even ? Placing{Memory::host, Memory::device} : Placing{Memory::device, Memory::host};
    case 3: return {Memory::managed, Memory::managed};
  }
  return even ? Placing{Memory::host, Memory::host} : Placing{Memory::managed, Memory::device};
}

void expect_the_hosts(const Call& given, const Coded& coded, int which, const std::vector<Bytes>& expected) {
  const Placing there = placing(which);
  if (run(given, coded, there.out, there.in) != expected)
    fail_check(__FILE__, __LINE__, text_of(given, coded) + ", placing " + std::to_string(which));
}
void compare(const Call& given, const Coded& coded, int which) {
  expect_the_hosts(given, coded, which, run(given, coded, Memory::host, Memory::host));
}

void for_every_coding(const std::function<void(const Coded&)>& use) {
  for (const NumberFormat format : formats)
    for (const CodeBits bits : {CodeBits::int4, CodeBits::int8}) use(Coded(format, bits));
}

}  // namespace

MPI_CASE(same_bits_as_host_memory) {
  int salt = 0;
  for_every_coding([&](const Coded& coded) {
    for (const What what : whats)
      for (const bool in_place : {false, true})
        for (const Wait wait : every_wait) {
          const Call given{.what = what,
                           .count = salt % 3 ? 701 : 512,
                           .in_place = in_place,
                           .wait = wait,
                           .large = salt % 4 == 0,
                           .salt = salt};
          const std::vector<Bytes> expected = run(given, coded, Memory::host, Memory::host);
          expect_the_hosts(given, coded, 0, expected);
          expect_the_hosts(given, coded, 1 + salt % (placings - 1), expected);
          ++salt;
        }
  });
}

MPI_CASE(every_placement) {
  const Coded coded(NumberFormat::float32, CodeBits::int8);
  for (const What what : whats)
    for (const bool in_place : {false, true})
      for (int which = 0; which < placings; ++which)
        compare({.what = what, .count = 300, .in_place = in_place, .salt = which}, coded, which);
}

MPI_CASE(strided_and_misaligned_numbers) {
  int salt = 0;
  for_every_coding([&](const Coded& coded) {
    for (const What what : gathers)
      for (const bool in_place : {false, true})
        for (const bool out : {false, true})
          for (const bool in : {false, true}) {
            compare(
                {.what = what, .count = 333, .in_place = in_place, .strided_out = out, .strided_in = in, .salt = salt},
                coded, salt % placings);
            ++salt;
          }
    compare({.what = What::allgather, .count = 333, .misplaced = 1, .salt = salt}, coded, 0);
  });
}

/// One number, less than a code block, whole code blocks, several parts of a run, and several runs.
MPI_CASE(all_lengths) {
  const Coded coded(NumberFormat::float32, CodeBits::int8);
  for (const int count : {1, 2, 255, 256, 257, 1024, 300'000})
    for (const What what : {What::allgather, What::allreduce})
      for (const bool in_place : {false, true})
        compare({.what = what, .count = count, .in_place = in_place, .salt = count}, coded, 0);
  compare({.what = What::allgather, .count = 4'300'000 / world_size(), .salt = 7}, coded, 0);
}

/// Repeated allgathers use the codes in the allgather cache of the node.
MPI_CASE(gathered_again) {
  const Coded coded(NumberFormat::float64, CodeBits::int8);
  for (const What what : gathers)
    for (int round = 0; round < 3; ++round)
      for (int which = 0; which < placings; ++which)
        compare({.what = what, .count = 2000, .in_place = round == 1, .salt = round % 2}, coded, which);
}

int main(int argc, char** argv) {
  if (argc < 2 || std::strcmp(argv[1], "--list") != 0)
    if (!start_cuda()) return 1;
  return run_cases(argc, argv);
}
