// SPDX-License-Identifier: Apache-2.0
#pragma once
// A collective with device memory: what is handed to MPI in its buffers' place, before and after the call.
#include <mpi.h>

#include <memory>
#include <new>
#include <optional>

#include "interpose/back/exchange.hpp"
#include "interpose/back/gpu/mirror.hpp"
#include "interpose/back/gpu/raise.hpp"
#include "interpose/back/gpu/trouble.hpp"
#include "interpose/back/note.hpp"
#include "interpose/back/owed.hpp"

namespace bestride {

/// The two buffers of a call while it is under way.
class Staged final : public Owed {
 public:
  /// `comm`: whose error handler is called. MPI_SUCCESS, or the error that was raised.
  int prepare(const Region& out, bool out_by_gpu, const Region& in, bool in_by_gpu, MPI_Comm comm) noexcept;
  /// What MPI is handed.
  const void* out() const noexcept { return out_ ? out_.address() : user_out_; }
  void* in() const noexcept { return in_ ? in_.address() : user_in_; }
  /// For the report: what was doubled.
  void note(const char* call_name, double seconds) const noexcept {
    if (out_) note_moved(call_name, "mirror", out_.layout(), seconds);
    if (in_) note_moved(call_name, "mirror", in_.layout(), out_ ? 0 : seconds);
  }
  /// Brings out what MPI has written; MPI_SUCCESS, or the error that was raised.
  int finish() noexcept;

  void fill() noexcept override { out_.bring_in() && in_.bring_in(); }
  void settle(bool good, const MPI_Status*) noexcept override {
    if (good) in_.bring_out();
  }
  bool wants_status() const noexcept override { return false; }
  bool refused() const noexcept override { return out_.refused() || in_.refused(); }
  int raise() const noexcept override { return bestride::raise(comm_); }

 private:
  Mirror out_, in_;
  const void* user_out_ = nullptr;
  void* user_in_ = nullptr;
  MPI_Comm comm_ = MPI_COMM_NULL;
};

/// Which of a call's buffers have to be staged.
struct Stagings {
  bool out = false, in = false;
  int error = MPI_SUCCESS;  ///< raised already
};
/// Looks where the regions lie. With a GPU-aware MPI contiguous types go as they are. A type that can't be represented, on device memory,
/// is an error.
Stagings find_stagings(const Region& out, const Region& in, MPI_Comm comm) noexcept;

/// Makes the call, `call(send buffer, receive buffer)`, with mirrors of what lies where the GPU has to move it. nullopt: nothing does, and
/// the call was not made. What the call owes hangs on its request. `call_name`: "MPI_Bcast".
template <class Call, class... Tail>
std::optional<int> stage(const char* call_name, const Region& out, const Region& in, MPI_Comm comm, Call call, Tail... tail) noexcept {
  const Stagings found = find_stagings(out, in, comm);
  if (found.error != MPI_SUCCESS) return found.error;
  if (!found.out && !found.in) return std::nullopt;
  if (!blocking<Tail...> && !request_of(tail...)) return std::nullopt;  // MPI's error
  const Stopwatch watch(reporting());
  std::unique_ptr<Staged> staged(fail_here(FailPoint::owed) ? nullptr : new (std::nothrow) Staged);
  if (!staged) {
    say_not_moved({"no memory to remember what a call owes"});
    return raise(comm);
  }
  if (const int error = staged->prepare(out, found.out, in, found.in, comm); error != MPI_SUCCESS) return error;
  staged->persistent = persistent<Tail...>;
  staged->pending = !staged->persistent;
  // Also where the request is only made: MPICH 4.0.2 copies the own block of persistent gathers and scatters then, not when they start.
  staged->fill();
  if (staged->refused()) return staged->raise();
  const int error = call(staged->out(), staged->in());
  if (reporting()) [[unlikely]] staged->note(call_name, watch.seconds());
  if (error != MPI_SUCCESS) return error;
  if (blocking<Tail...>) return staged->finish();
  hang(staged.release(), *request_of(tail...));
  return error;
}

}  // namespace bestride
