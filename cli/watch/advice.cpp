// SPDX-License-Identifier: Apache-2.0
#include "cli/watch/advice.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <csignal>

#include "cli/job/rank_line.hpp"
#include "cli/job/rank_list.hpp"
#include "cli/watch/deadlock_text.hpp"
#include "cli/watch/finding_facts.hpp"
#include "cli/watch/mismatch_text.hpp"
#include "cli/watch/unmatched_text.hpp"
#include "telemetry/detector/rank_facts.hpp"
#include "telemetry/waits/call_kind.hpp"

namespace bestride::inline cli {
namespace {

const char* slow_path_advice(const SlowPath& path) {
  if (!path.between_hosts)
    return "look for other processes on the ranks' cores, and for ranks whose memory is on another NUMA node";
  if (is_link(path.kind))
    return "look for errors and a lower rate on the links between the hosts, and for other traffic on their path";
  return "look at the host's network interface: errors, its rate, its PCIe link; run without this host to compare";
}

/// A call that all members have made and that does not end: its arguments may not fit each other, where the record does
/// not have them.
std::string communication_advice(const Finding& finding, const JobView& view) {
  const std::string otherwise = "the network and the MPI library; 'bestride where --calls 8' has the last calls";
  const auto is_in = [&](const auto& is_call) {
    return std::any_of(view.job.ranks.begin(), view.job.ranks.end(), [&](const RankSnapshot& rank) {
      const ThreadSnapshot* const thread = leading_thread(rank);
      return std::binary_search(finding.culprits.begin(), finding.culprits.end(), rank.world_rank) && thread &&
             thread->current && is_call(*thread->current);
    });
  };
  if (is_in([](const CallSnapshot& call) {
        return telemetry::kind_of(call.function, call.ordinal != 0) == CallKind::neighborhood;
      }))
    return "compare the neighbors that the ranks gave when they created the communicator, and the amounts: the call "
           "waits for ever for an edge that only one of its two ranks has; else look at " +
           otherwise;
  if (is_in([](const CallSnapshot& call) { return function_name(call.function) == "MPI_Intercomm_create"; }))
    return "compare the remote leader, the peer communicator and the tag that the leaders of the two groups give; else "
           "look at " +
           otherwise;
  if (is_in([](const CallSnapshot& call) {
        return function_name(call.function).starts_with("MPI_Comm_create_") ||
               function_name(call.function).starts_with("MPI_Intercomm_create_");
      }))
    return "compare the groups and the tag that the ranks pass, and look for a member of the group that does not make "
           "this call; else look at " +
           otherwise;
  if (is_in([](const CallSnapshot& call) {
        const CallKind kind = telemetry::kind_of(call.function, false);
        return kind == CallKind::wait_all || kind == CallKind::wait_any;
      }))
    return "if a request of this call is of the program's own (MPI_Grequest_start), look for what calls "
           "MPI_Grequest_complete; else look at " +
           otherwise;
  return "look at " + otherwise;
}

}  // namespace

std::string advice(const Finding& finding, const JobView& view) {
  const RankSnapshot* const rank = finding.culprits.empty() ? nullptr : find_rank(view, finding.culprits[0]);
  const std::string pid = rank ? std::to_string(rank->pid) : "PID";
  switch (finding.fault) {
    case Fault::crash: {
      if (finding.cause == Cause::aborted) return "read what the rank printed before it called MPI_Abort";
      if (finding.cause == Cause::exception)
        return "the traceback is in the rank's output; 'python -m mpi4py SCRIPT' ends all ranks when one has an "
               "exception";
      if (finding.cause == Cause::mpi_error && rank && rank->state == ProcessState::starting)
        return "the MPI library can't start on " + rank->host +
               ": look at the transports and devices that it is told to use, and at the limits of memory and of "
               "/dev/shm "
               "there";
      if (finding.cause == Cause::mpi_error)
        return "look at the arguments of this call, or of the calls that have begun the requests that it completes; "
               "the error handler of its communicator has ended the job, as MPI_ERRORS_ARE_FATAL does";
      if (const EndSnapshot* const end = noted(finding, view, EndKind::signal);
          end && end->text.starts_with("stack overflow"))
        return "look for a recursion without end and for large local arrays; 'ulimit -s' shows the limit of the stack";
      if (noted(finding, view, EndKind::signal))
        return "look at this place; run with a debugger or core dumps to see its variables";
      if (finding.cause == Cause::starting) return "read what the rank and the launcher printed";
      const int status = wait_status(finding, view);
      if (const RankSnapshot* const rank = find_rank(view, finding.culprits.front());
          rank && is_killed_after_good_end(*rank, view.job.ranks))
        return "if a rank ends by _exit() (os._exit() of Python) after MPI_Finalize, some launchers kill the others: "
               "let it return from main or call exit()";
      if (status >= 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        return "SIGKILL often comes from the kernel's out-of-memory killer (dmesg) or the batch system's memory limit";
      if (status >= 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT)
        return "the rank's own output may say where, as that of libgfortran does; else run again with core dumps "
               "(ulimit -c unlimited) and open the core with gdb";
      if (status >= 0 && WIFSIGNALED(status) && (WTERMSIG(status) == SIGTERM || WTERMSIG(status) == SIGINT))
        return "another process has sent this signal to the rank: a user, a script or the batch system, whose log may "
               "say";
      if (status >= 0 && WIFEXITED(status)) return "the program ended itself; read what the rank printed";
      return "run again with core dumps (ulimit -c unlimited) and open the core with gdb";
    }
    case Fault::stopped:
      return finding.cause == Cause::traced ? "continue the rank in the debugger, or detach it"
                                            : "kill -CONT " + pid + " continues it";
    case Fault::mismatch: return mismatch_advice(finding);
    case Fault::unmatched_message: return unmatched_advice(finding, view);
    case Fault::deadlock: return deadlock_advice(finding, view);
    case Fault::computation_hang:
      if (finding.cause == Cause::starting)
        return "look at what the rank does before MPI_Init, with a debugger or py-spy";
      if (finding.cause == Cause::uninterruptible)
        return std::string("look at the file system or device in which ") + plural(finding, "it waits", "they wait");
      if (finding.cause == Cause::polling)
        return "compare source, tag and communicator of the polling calls with those of the sends; "
               "'bestride where --calls 8' has the last calls";
      if (finding.cause == Cause::computing)
        return std::string("look at the loop in which ") + plural(finding, "it is; its stack", "they are; the stacks") +
               plural(finding, " is above", " are above");
      return std::string("look at what ") +
             plural(finding, "it waits for; its stack is", "they wait for; the stacks are") + " above";
    case Fault::communication_hang: return communication_advice(finding, view);
    case Fault::slow:
      return finding.cpu_share >= 0 && finding.cpu_share < 0.9
                 ? "look for other processes on its core, and for a limit of its CPU time"
                 : "look for a change of its work, or of its core's clock (thermal limit)";
    case Fault::slow_communication: return finding.path ? slow_path_advice(*finding.path) : "";
    case Fault::starvation:
      return "look at how the rank chooses what it receives next; gdb -p " + pid + " has its stack";
    case Fault::unreachable: return "look whether the host is up and can be reached: ping, and the batch system's log";
  }
  return "";
}

}  // namespace bestride::inline cli
