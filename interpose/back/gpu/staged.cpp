// SPDX-License-Identifier: Apache-2.0
#include "interpose/back/gpu/staged.hpp"

#include "interpose/back/gpu/together.hpp"
#include "interpose/back/gpu/way.hpp"

namespace bestride {
namespace {

bool by_gpu(const Region& region) noexcept {
  if (region.unknown) return find_place(region.user, LayoutPtr()).by_gpu;
  return (region.reads && find_place(region.user, region.reads).by_gpu) ||
         (region.writes && region.writes != region.reads && find_place(region.user, region.writes).by_gpu);
}

}  // namespace

Stagings find_stagings(const Region& out, const Region& in, MPI_Comm comm) noexcept {
  Stagings found{by_gpu(out), by_gpu(in)};
  if (!found.out && !found.in) return found;
  if (gpu_aware()) {
    found.out = found.out && !out.plain;
    found.in = found.in && !in.plain;
  }
  if ((found.out && out.unknown) || (found.in && in.unknown))
    found.error = raise_on(comm, Trouble::unknown, "a datatype that can't be represented");
  return found;
}

int Staged::prepare(const Region& out, bool out_by_gpu, const Region& in, bool in_by_gpu, MPI_Comm comm) noexcept {
  comm_ = comm;
  user_out_ = out.user;
  user_in_ = const_cast<void*>(in.user);
  Result<cuda::Done> done = cuda::Done{};
  if (out_by_gpu) done = out_.prepare(out, comm);
  if (done && in_by_gpu) done = in_.prepare(in, comm);
  if (done) return MPI_SUCCESS;
  say_not_moved(done.error());
  return bestride::raise(comm);
}

int Staged::finish() noexcept {
  Together together;
  in_.bring_out();
  return together.conclude() ? bestride::raise(comm_) : MPI_SUCCESS;
}

}  // namespace bestride
