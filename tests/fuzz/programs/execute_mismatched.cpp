// SPDX-License-Identifier: Apache-2.0
// Erroneous collective calls: one rank's lengths are not those of the others. The MPI library reports some of them on
// some ranks, and then the results must be the same with the preload library, which must not hang.
#include <algorithm>

#include "tests/fuzz/programs/collective.hpp"
#include "tests/fuzz/programs/common.h"

namespace bestride::fuzz {
namespace {

constexpr What kinds_of_call[] = {What::bcast,    What::gather,    What::scatter, What::allgather,
                                  What::alltoall, What::alltoallv, What::reduce,  What::allreduce};

/// What one rank passes: `mine` elements where the others pass `usual`.
struct Lengths {
  std::int64_t usual, mine;
  bool sends, receives;  ///< the directions in which this rank passes `mine`
  int out() const { return static_cast<int>(sends ? mine : usual); }
  int in() const { return static_cast<int>(receives ? mine : usual); }
};

int call(Context& context, What what, const Lengths& n, MPI_Datatype type, void* out, void* in, int root,
         const CommSlot& slot) {
  const MPI_Comm comm = slot.h;
  const auto size = static_cast<std::size_t>(slot.group().size());
  const void* const from = out;
  switch (what) {
    case What::bcast: return CALL(context, Bcast, in, n.in(), type, root, comm);
    case What::gather: return CALL(context, Gather, from, n.out(), type, in, n.in(), type, root, comm);
    case What::scatter: return CALL(context, Scatter, from, n.out(), type, in, n.in(), type, root, comm);
    case What::allgather: return CALL(context, Allgather, from, n.out(), type, in, n.in(), type, comm);
    case What::alltoall: return CALL(context, Alltoall, from, n.out(), type, in, n.in(), type, comm);
    case What::alltoallv: {
      std::vector<int> out_counts(size, n.out()), in_counts(size, n.in()), at;
      for (std::size_t k = 0; k < size; ++k) at.push_back(static_cast<int>(k) * std::max(n.out(), n.in()));
      return CALL(context, Alltoallv, from, out_counts, at, type, in, in_counts, at, type, comm);
    }
    case What::reduce: return CALL(context, Reduce, from, in, n.in(), type, MPI_SUM, root, comm);
    default: return CALL(context, Allreduce, from, in, n.in(), type, MPI_SUM, comm);
  }
}

/// Calls after which the communicator has shared memory, small or full, also if that is not forced.
void use(const CommSlot& slot, std::int64_t bytes) {
  if (bytes == 0) return;
  std::vector<char> data(static_cast<std::size_t>(bytes));
  for (const int count : {static_cast<int>(bytes), 1, 1, 1}) MPI_Bcast(data.data(), count, MPI_BYTE, 0, slot.h);
}

}  // namespace

void mismatched(Context& context, const Step& step) {
  Random common(seed_of(step, 1));
  CommSlot& slot = context.pick_comm(common, 2);
  const int size = slot.group().size();
  const What what = common.pick(kinds_of_call);
  const int root = static_cast<int>(common.between(0, size - 1)), odd = static_cast<int>(common.between(0, size - 1));
  const bool numbers = reduces(what) || common.chance(50);
  const MPI_Datatype type = numbers ? MPI_INT : MPI_BYTE;
  const std::int64_t usual = block_bytes(common, step.size) / (numbers ? 4 : 1) + 2;
  const std::int64_t others[] = {usual / 2, usual * 2, usual + 1, usual - 1, 0};
  Lengths lengths{usual, common.pick(others), common.chance(50), false};
  lengths.receives = !lengths.sends || common.chance(30);
  if (slot.rank != odd) lengths.mine = usual;
  const std::int64_t room = usual * 2 * (numbers ? 4 : 1) * size;
  constexpr std::int64_t used[] = {0, 300'000, 5'000'000};
  use(slot, common.pick(used));
  for (int repeat = 0; repeat < 6; ++repeat) {
    const auto seed = [&](bool out) {
      return seed_of(step, 2, static_cast<std::uint64_t>(slot.rank), static_cast<std::uint64_t>(repeat * 2 + out));
    };
    Buffer out(context, {seed(true), 0, 0, room}), in(context, {seed(false), 0, 0, room});
    const int code = call(context, what, lengths, type, out.at(), in.at(), root, slot);
    context.item(name_of(what), fuzz_class(code));
    in.report(context, "in");
  }
}

}  // namespace bestride::fuzz
