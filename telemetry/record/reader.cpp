// SPDX-License-Identifier: Apache-2.0
#include "telemetry/record/reader.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "telemetry/record/functions.hpp"
#include "telemetry/record/message_log.hpp"
#include "telemetry/record/printable.hpp"
#include "telemetry/record/process_state.hpp"
#include "telemetry/record/record_copies.hpp"
#include "telemetry/record/tick_clock.hpp"

namespace bestride::inline telemetry {
namespace {

constexpr std::size_t deepest_stack = 64;

/// Leaves out a character of UTF-8 at the end of a text that was cut within it.
void drop_cut_character(std::string& text) {
  std::size_t at = text.size();
  while (at > 0 && text.size() - at < 3 && (static_cast<unsigned char>(text[at - 1]) & 0xc0) == 0x80) --at;
  if (at == 0) return;
  const auto first = static_cast<unsigned char>(text[at - 1]);
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
  if (text.size() - (at - 1) < length) text.resize(at - 1);
}

/// Text of a fixed field, which may lack its end.
template <std::size_t size>
std::string text(const char (&field)[size], char kept = '?') {
  std::string result(field, strnlen(field, size));
  if (result.size() + 1 >= size) drop_cut_character(result);
  return printable(result, kept);
}

std::uint32_t in_use(const Shared<std::uint32_t>& count, unsigned most) { return std::min(count.get(), most); }

/// Turns the copies of one record file into a snapshot; every index is checked here.
class SnapshotMaker {
 public:
  SnapshotMaker(const RecordCopies& copies, const ReadOptions& options) : copies_(copies), options_(options) {}

  Result<RankSnapshot> make(const std::string& path) {
    if (!header(path)) return Error{"'" + path + "' is damaged; remove it"};
    for (unsigned slot = 0; slot < in_use(file().header.threads, max_threads); ++slot)
      if (file().threads[slot].tid.get() != 0 || file().threads[slot].calls.get() != 0) thread(slot);
    for (std::uint32_t i = 0; i < max_communicators; ++i) communicator(i);
    std::sort(waited_for_.begin(), waited_for_.end());
    for (std::uint32_t i = 0; i < max_requests; ++i) request(i);
    for (ThreadSnapshot& each : rank_.threads) polled(each);
    for (std::uint32_t i = 0; i < module_count(); ++i) module(i);
    for (std::uint32_t i = 0; i < site_count(); ++i) site(i);
    for (const PeerRecord& record : file().peers) peer(record);
    for (std::uint32_t i = 0; i < max_epochs; ++i) epoch(i);
    for (unsigned i = 0; i < amounts_kept; ++i) amounts(i);
    messages();
    for (const EndKind kind :
         {EndKind::mpi_error, EndKind::signal, EndKind::exit, EndKind::exception, EndKind::system_exit})
      end_note(kind);
    if (rank_.alive && rank_.end && rank_.end->kind == EndKind::mpi_error) leave_failed_call();
    wait();
    help();
    return std::move(rank_);
  }

 private:
  const RecordFile& file() const { return copies_.second(); }
  std::uint32_t module_count() const { return in_use(file().header.modules, max_modules); }
  std::uint32_t site_count() const { return in_use(file().header.sites, max_sites); }

  std::uint16_t function(std::uint32_t number) const {
    return rank_.functions_known && number < recorded_functions().size() ? static_cast<std::uint16_t>(number)
                                                                         : no_function;
  }
  static std::uint32_t communicator_index(std::uint32_t index) { return index < max_communicators ? index : no_index; }
  /// no_index if the communicator does not exist any more.
  std::uint32_t communicator_of(std::uint32_t id) const {
    const std::uint32_t index = id & 0xff;
    return id != no_index && index < max_communicators &&
                   communicator_id(index, file().communicators[index].kind.get() >> 8) == id
               ? index
               : no_index;
  }

  bool header(const std::string& path) {
    const RecordHeader& from = file().header;
    rank_.path = path;
    rank_.job = text(from.job);
    rank_.host = text(from.host);
    rank_.executable = text(from.executable);
    rank_.abi = text(from.abi);
    rank_.watcher = text(from.watcher);
    rank_.launch = text(from.launch);
    if (from.launch_rank >= 0 && from.launch_rank < from.launch_size) {
      rank_.launch_rank = from.launch_rank;
      rank_.launch_size = from.launch_size;
    }
    rank_.pid = from.pid;
    rank_.process_start = from.process_start;
    if (from.state.get() > static_cast<std::uint32_t>(ProcessState::finalized)) return false;
    rank_.state = static_cast<ProcessState>(from.state.get());
    // Written one after the other, so they need not fit each other yet.
    if (from.world_rank.get() >= 0 && from.world_rank.get() < from.world_size.get()) {
      rank_.world_rank = from.world_rank.get();
      rank_.world_size = from.world_size.get();
    }
    if (const std::uint32_t exited = from.exited.get(); exited >= 1 && exited <= 256)
      rank_.wait_status = static_cast<int>(exited - 1) << 8;
    rank_.functions_known =
        from.function_count == recorded_functions().size() && from.function_hash == recorded_functions_hash();
    rank_.ticks_per_second = from.ticks_per_second.get();
    rank_.anchor_ticks = from.anchor_ticks;
    rank_.anchor_realtime = from.anchor_realtime;
    rank_.read_at = ticks();
    rank_.sampling = from.sampling.get();
    rank_.threads_dropped = from.threads_dropped.get();
    rank_.communicators_dropped = from.communicators_dropped.get();
    rank_.requests_dropped = from.requests_dropped.get();
    rank_.peers_dropped = from.peers_dropped.get();
    rank_.epochs_dropped = from.epochs_dropped.get();
    rank_.other_sends = from.other_sends.get();
    rank_.other_receives = from.other_receives.get();
    rank_.sites_dropped = from.sites_dropped.get();
    rank_.ticks_per_record = from.ticks_per_record.get();
    rank_.pid_namespace = from.pid_namespace;
    rank_.alive = process_lives(from, copies_.file());
    rank_.visible = rank_.alive && is_visible(from);
    if (rank_.visible) rank_.use = process_use(rank_.pid);
    return true;
  }

  CallSnapshot checked(CallSnapshot call) const {
    call.function = function(call.function);
    call.communicator = communicator_of(call.communicator);
    if (call.site >= site_count()) call.site = no_index;
    return call;
  }

  void current_call(ThreadSnapshot& thread) {
    // The thread's position and the call are two reads; they belong together if the position is the same afterwards.
    for (int i = 0; i < 4; ++i) {
      const auto before = copies_.position(thread.slot);
      if (!before) return;
      thread.calls = *before;
      if (*before == 0) return;
      const auto call = copies_.call(thread.slot, *before - 1);
      const std::vector<std::uint64_t> handles = copies_.wait_list(thread.slot, *before - 1);
      thread.in_mpi = !call || call->left == 0;
      thread.moving = copies_.position(thread.slot) != before;
      if (thread.moving) continue;
      thread.torn = !call;
      if (!call || !thread.in_mpi) return;
      thread.current = checked(*call);
      for (const std::uint64_t handle : handles)
        waited_for_.push_back({handle, static_cast<std::uint16_t>(thread.slot + 1)});
      return;
    }
  }

  void thread(unsigned slot) {
    const ThreadRecord& from = file().threads[slot];
    ThreadSnapshot thread;
    thread.slot = slot;
    thread.tid = static_cast<int>(from.tid.get());
    current_call(thread);
    thread.polls = from.polls.get();
    thread.last_left = from.last_left.get();
    thread.poll_function = function(from.poll_function.get());
    const std::uint64_t ended = thread.calls - (thread.calls > 0 && thread.in_mpi ? 1 : 0);
    const std::uint64_t most = std::min<std::uint64_t>(options_.finished_calls, slot ? ring_size : main_ring_size);
    for (std::uint64_t number = ended - std::min(ended, most); number < ended; ++number)
      if (const auto call = copies_.call(slot, number)) thread.finished.push_back(checked(*call));
    if (rank_.visible && thread.tid > 0) {
      const ProcessStatus status = process_status(rank_.pid, thread.tid);
      thread.state = status.state;
      thread.cpu_seconds = static_cast<double>(status.cpu_time) / static_cast<double>(sysconf(_SC_CLK_TCK));
      if (thread.state == 'D' || thread.state == 'S')
        thread.channel = printable(waiting_channel(rank_.pid, thread.tid));
    }
    rank_.threads.push_back(std::move(thread));
  }

  /// Other threads are looked at only if the call lasts.
  void help() {
    if (!rank_.visible || (file().header.concurrent.get() == 0 && rank_.threads.size() < 2)) return;
    std::vector<int> in_calls;
    double least = help_seconds;
    for (const ThreadSnapshot& thread : rank_.threads) {
      if (thread.in_mpi) in_calls.push_back(thread.tid);
      if (thread.current) least = std::min(least, rank_.seconds_since(thread.current->entered));
    }
    rank_.may_be_helped = !in_calls.empty() && least >= help_seconds && other_threads_may_go_on(rank_.pid, in_calls);
  }

  void wait() {
    const ThreadSnapshot* const main = main_thread(rank_);
    if (!rank_.visible || !main) return;
    for (const ThreadSnapshot& thread : rank_.threads)
      if (thread.in_mpi || (thread.calls > 0 && rank_.seconds_since(thread.last_left) < quiet_seconds)) return;
    rank_.wait = process_wait(rank_.pid, main->tid);
  }

  /// Everything but the count of collectives is constant while a communicator exists.
  static bool same(const CommunicatorRecord& a, const CommunicatorRecord& b) {
    return a.uid.get() == b.uid.get() && a.parent_uid.get() == b.parent_uid.get() && a.size.get() == b.size.get() &&
           a.rank.get() == b.rank.get() && a.first_member.get() == b.first_member.get() &&
           a.stride.get() == b.stride.get() && a.kind.get() == b.kind.get() && a.site.get() == b.site.get() &&
           a.local_size.get() == b.local_size.get() && a.side.get() == b.side.get() &&
           std::memcmp(a.name, b.name, sizeof a.name) == 0;
  }

  void communicator(std::uint32_t i) {
    const CommunicatorRecord& from = file().communicators[i];
    const std::uint32_t kind = from.kind.get() & 0xff & ~freed_flag;
    if (kind == 0) return;
    if (kind > static_cast<std::uint32_t>(CommunicatorKind::file) || from.size.get() < 0 || from.rank.get() < -1 ||
        from.local_size.get() < 0 || from.side.get() > 1 || !same(from, copies_.first().communicators[i]) ||
        !same(from, copies_.third().communicators[i])) {
      ++rank_.torn;
      return;
    }
    const std::uint64_t collectives = from.collectives.get();
    rank_.communicators.push_back(
        {i, from.uid.get(), from.parent_uid.get(), static_cast<std::uint32_t>(collectives), from.size.get(),
         from.rank.get(), from.first_member.get(), from.stride.get(), static_cast<CommunicatorKind>(kind),
         text(from.name), (from.kind.get() & freed_flag) != 0, static_cast<std::uint32_t>(collectives >> 32),
         from.site.get() < site_count() ? from.site.get() : no_index, from.local_size.get(), from.side.get()});
  }

  bool same_request(std::uint32_t i, const RecordFile& other) const {
    const RequestRecord &a = file().requests[i], &b = other.requests[i];
    return file().request_keys[i].get() == other.request_keys[i].get() && a.posted.get() == b.posted.get() &&
           a.bytes.get() == b.bytes.get() && a.function.get() == b.function.get() &&
           a.communicator.get() == b.communicator.get() && a.peer.get() == b.peer.get() && a.tag.get() == b.tag.get() &&
           a.ordinal.get() == b.ordinal.get() && a.active.get() == b.active.get();
  }

  void request(std::uint32_t i) {
    const std::uint64_t key = file().request_keys[i].get();
    const RequestRecord& from = file().requests[i];
    if (key == 0 || key == claimed_key || from.active.get() == 0) return;
    if (!same_request(i, copies_.first()) || !same_request(i, copies_.third())) {
      ++rank_.torn;
      return;
    }
    std::uint16_t waiter = from.waiter.get(), poller = 0;
    if ((waiter & poll_flag) != 0) {
      const unsigned slot = waiter & (max_threads - 1);
      const ThreadRecord& thread = file().threads[slot];
      const bool holds = notes_hold(thread) && waiter == poll_mark(thread.noted_at.get(), slot);
      poller = holds ? static_cast<std::uint16_t>(slot + 1) : 0;
      waiter = 0;
    }
    if (const auto at = std::lower_bound(waited_for_.begin(), waited_for_.end(), std::pair{key, std::uint16_t{0}});
        at != waited_for_.end() && at->first == key)
      waiter = at->second;
    rank_.requests.push_back({key, from.posted.get(), from.bytes.get(), function(from.function.get()),
                              communicator_of(from.communicator.get()), from.peer.get(), from.tag.get(),
                              from.ordinal.get(), waiter, poller, from.handles.get(), from.number.get()});
  }

  static bool notes_hold(const ThreadRecord& thread) {
    return thread.noted_at.get() == static_cast<std::uint32_t>(thread.calls.get()) && thread.noted_since.get() != 0;
  }

  /// What is noted is all that the thread polls if it has since polled often enough to come to each of its requests.
  void polled(ThreadSnapshot& thread) {
    const ThreadRecord& from = file().threads[thread.slot];
    const std::uint64_t most = 2 * (rank_.requests.size() + max_probes), noted = from.noted.get();
    if (thread.in_mpi || thread.moving || !notes_hold(from)) return;
    thread.polled_known = (noted & polled_others) == 0 && thread.polls - from.noted_since.get() >= most &&
                          rank_.torn == 0 && rank_.requests_dropped == 0;
    thread.polls_one = (noted & polled_several) == 0;
    for (unsigned i = 0; i < std::min<std::uint64_t>(noted & polled_probes, max_probes); ++i) {
      const ProbeRecord& probe = from.probes[i];
      thread.probes.push_back({function(probe.function.get()), communicator_of(probe.communicator.get()),
                               probe.peer.get(), probe.tag.get()});
    }
  }

  void module(std::uint32_t i) {
    const ModuleRecord& from = file().modules[i];
    const std::size_t bytes = std::min<std::size_t>(from.build_id_bytes, sizeof from.build_id);
    rank_.modules.push_back({from.load_address, {from.build_id, from.build_id + bytes}, text(from.path)});
  }

  std::uint32_t module_index(std::uint32_t index) const { return index < module_count() ? index : no_index; }

  void site(std::uint32_t i) {
    const SiteRecord& from = file().sites[i];
    SiteSnapshot site;
    site.address = from.address.get();
    site.module = module_index(from.module.get());
    site.function = function(from.function.get());
    site.calls = from.calls.get();
    site.bytes = from.bytes.get();
    site.ticks = from.ticks.get();
    site.most_ticks = from.most_ticks.get();
    for (unsigned k = 0; k < histogram_size; ++k) site.histogram[k] = from.histogram[k].get();
    const std::uint32_t frames = in_use(file().header.frames, max_frames);
    // In a damaged file the callers may form a cycle.
    for (std::uint32_t at = from.frame.get(); at < frames && site.stack.size() < deepest_stack;
         at = file().frames[at].caller)
      site.stack.push_back({file().frames[at].address, module_index(file().frames[at].module)});
    const float saved = file().effects.saved_seconds[i].get();
    site.saved_seconds = std::isfinite(saved) ? static_cast<double>(saved) : 0;
    site.served = file().effects.served[i].get();
    rank_.sites.push_back(std::move(site));
  }

  void peer(const PeerRecord& from) {
    const std::uint64_t key = from.key.get();
    if (static_cast<std::uint32_t>(key) == 0) return;
    const auto communicator = static_cast<std::uint32_t>(key >> 32);
    rank_.peers.push_back({communicator == 0 ? no_index : communicator_index(communicator - 1),
                           static_cast<std::uint32_t>(key) - 1, from.sent_messages.get(), from.sent_bytes.get(),
                           from.received_messages.get(), from.received_bytes.get()});
  }

  void epoch(std::uint32_t i) {
    const EpochRecord &from = file().epochs[i], &after = copies_.third().epochs[i];
    const std::uint64_t key = from.key.get();
    if (static_cast<std::uint32_t>(key) == 0 || key != after.key.get()) return;
    rank_.epochs.push_back({communicator_of(static_cast<std::uint32_t>(key >> 32)),
                            static_cast<std::int32_t>(key & 0x7fffffff) - 1, from.posts.get(), from.starts.get(),
                            from.completes.get()});
  }

  void amounts(unsigned i) {
    const AmountsRecord& from = file().amounts[i];
    const std::uint32_t version = copies_.first().amounts[i].version.get();
    const std::size_t sent = from.sent.get(), received = from.received.get();
    if (version % 2 != 0 || copies_.third().amounts[i].version.get() != version || from.ordinal.get() == 0 ||
        sent + received > max_amounts)
      return;
    AmountsSnapshot& snapshot = rank_.amounts.emplace_back();
    snapshot.communicator = communicator_of(from.communicator.get());
    snapshot.ordinal = from.ordinal.get();
    for (std::size_t n = 0; n < sent; ++n) snapshot.sent.push_back(from.values[n].get());
    for (std::size_t n = 0; n < received; ++n) snapshot.received.push_back(from.values[sent + n].get());
  }

  void message(std::uint64_t n) {
    const std::size_t i = n % max_messages;
    const MessageRecord& from = file().messages[i];
    for (const RecordFile* copy : {&copies_.first(), &copies_.second(), &copies_.third()})
      if (copy->messages[i].sequence.get() != message_sequence(n)) return;
    const std::uint16_t flags = from.peer.get(), index = flags & static_cast<std::uint16_t>(~received_flag);
    const std::uint64_t key = index < max_peers ? file().peers[index].key.get() : 0;
    if (static_cast<std::uint32_t>(key) == 0) return;
    const auto in = static_cast<std::uint32_t>(key >> 32);
    const std::uint64_t posted = from.posted.get();
    const auto at = [&](std::uint64_t after) { return (posted + after) << message_tick_shift; };
    rank_.messages.push_back({in == 0 ? no_index : communicator_index(in - 1), static_cast<std::uint32_t>(key) - 1,
                              (flags & received_flag) != 0, from.tag.get(), from.together.get(), from.number.get(),
                              from.bytes.get(), at(0), at(from.waited.get()), at(from.completed.get())});
  }

  void end_note(EndKind kind) {
    const EndNote& from = file().ends[static_cast<unsigned>(kind)];
    const std::uint64_t calls = from.calls.get();
    if (calls == 0 || calls == ~std::uint64_t{0}) return;  // none, or not whole
    // An error handler that leaves the call, as by longjmp(), leaves the note, too.
    if (kind == EndKind::mpi_error &&
        std::any_of(rank_.threads.begin(), rank_.threads.end(), [&](const ThreadSnapshot& thread) {
          return thread.slot == from.thread.get() && (!thread.in_mpi || thread.calls + 1 != calls);
        }))
      return;
    // The program goes on, as one that embeds Python, or has reported another exception on purpose. mpi4py frees what
    // it has made before it calls MPI_Finalize.
    constexpr std::uint64_t calls_at_exit = 4;
    if ((kind == EndKind::exception || kind == EndKind::system_exit) &&
        std::any_of(rank_.threads.begin(), rank_.threads.end(), [&](const ThreadSnapshot& thread) {
          return thread.slot == from.thread.get() && thread.calls + 1 > calls + calls_at_exit;
        }))
      return;
    if (kind == EndKind::system_exit) rank_.system_exit = text(from.text, '\n');
    if (kind == EndKind::system_exit || (rank_.end && rank_.end->at <= from.at.get())) return;
    rank_.end = EndSnapshot{kind, from.at.get(), from.code.get(), text(from.text, '\n')};
  }

  /// A thread that is in an error handler, which may take its time: its call has failed, and takes part in nothing.
  void leave_failed_call() {
    const unsigned slot = file().ends[static_cast<unsigned>(EndKind::mpi_error)].thread.get();
    for (ThreadSnapshot& thread : rank_.threads) {
      if (thread.slot != slot || !thread.current) continue;
      CallSnapshot failed = *thread.current;
      for (CommunicatorSnapshot& each : rank_.communicators)
        if (each.index == failed.communicator && each.collectives == failed.ordinal)
          each.collectives -= failed.ordinal != 0;
      failed.ordinal = 0;
      failed.left = 1;  // not timed
      thread.finished.push_back(failed);
      thread.last_left = std::max(thread.last_left, rank_.end->at);
      thread.current.reset();
      thread.in_mpi = false;
    }
  }

  void messages() {
    const std::uint64_t written = copies_.first().header.messages.get();
    for (std::uint64_t n = written - std::min<std::uint64_t>(written, max_messages); n < written; ++n) message(n);
    // Reduced by the rule of the writers, so that both sides keep the same messages.
    for (std::uint32_t share = 0xffffffff; rank_.messages.size() > options_.finished_calls; share >>= 1) {
      std::erase_if(rank_.messages,
                    [&](const MessageSnapshot& each) { return MessageLog::hash(each.number) > share || share == 0; });
      if (share == 0) break;
    }
  }

  const RecordCopies& copies_;
  const ReadOptions& options_;
  RankSnapshot rank_;
  std::vector<std::pair<std::uint64_t, std::uint16_t>> waited_for_;  ///< handles, each with 1 + the slot that waits
};

}  // namespace

std::optional<CallCount> read_call_count(int file) noexcept {
  std::uint32_t state = 0;
  alignas(ThreadRecord) unsigned char bytes[sizeof(ThreadRecord) * max_threads];
  if (pread(file, &state, sizeof state, offsetof(RecordFile, header) + offsetof(RecordHeader, state)) != sizeof state ||
      pread(file, bytes, sizeof bytes, offsetof(RecordFile, threads)) != sizeof bytes ||
      state > static_cast<std::uint32_t>(ProcessState::finalized))
    return std::nullopt;
  CallCount count{static_cast<ProcessState>(state)};
  for (unsigned i = 0; i < max_threads; ++i) {
    std::uint64_t calls = 0;
    std::memcpy(&calls, bytes + i * sizeof(ThreadRecord) + offsetof(ThreadRecord, calls), sizeof calls);
    count.calls += calls;
  }
  return count;
}

Result<RankSnapshot> read_record(const std::string& path, const ReadOptions& options) {
  const auto read = [&]() -> Result<RankSnapshot> {
    const auto copies = RecordCopies::read(path);
    if (!copies) return copies.error();
    return SnapshotMaker(*copies, options).make(path);
  };
  auto rank = read();
  // The process may have written more between the copy and its end. The file does not change any more.
  if (rank && !rank->alive) return read();
  return rank;
}

}  // namespace bestride::inline telemetry
