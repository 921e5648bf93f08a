// SPDX-License-Identifier: Apache-2.0
#include "telemetry/record/snapshot_code.hpp"

#include <algorithm>

#include "telemetry/record/functions.hpp"

namespace bestride::inline telemetry {
namespace {

constexpr std::size_t longest_build_id = 20;

// One description of each structure for both directions. Archive: ByteWriter with const structures, or ByteReader.

template <class Archive, class Call>
void visit_call(Archive& archive, Call& c) {
  archive(c.number, c.entered, c.left, c.function, c.operation, c.communicator, c.peer, c.tag, c.second_peer,
          c.second_tag, c.bytes, c.ordinal, c.site);
}

constexpr auto call = [](auto& archive, auto& c) { visit_call(archive, c); };

constexpr auto probe = [](auto& archive, auto& p) { archive(p.function, p.communicator, p.peer, p.tag); };

constexpr auto thread = [](auto& archive, auto& t) {
  archive(t.slot, t.tid, t.in_mpi, t.moving, t.torn, t.calls, t.polls, t.last_left, t.poll_function, t.state, t.channel,
          t.cpu_seconds);
  archive(t.polled_known, t.polls_one);
  archive.list(t.probes, max_probes, probe);
  archive.maybe(t.current, call);
  archive.list(t.finished, main_ring_size, call);
};

constexpr auto communicator = [](auto& archive, auto& c) {
  archive(c.index, c.uid, c.parent_uid, c.collectives, c.size, c.rank, c.first_member, c.stride, c.kind, c.name,
          c.freed, c.reductions, c.site, c.local_size, c.side);
};

constexpr auto epoch = [](auto& archive, auto& e) { archive(e.window, e.rank, e.posts, e.starts, e.completes); };

constexpr auto amounts = [](auto& archive, auto& m) {
  archive(m.communicator, m.ordinal);
  for (auto* const list : {&m.sent, &m.received})
    archive.list(*list, max_amounts, [](auto& a, auto& value) { a(value); });
};

constexpr auto request = [](auto& archive, auto& r) {
  archive(r.key, r.posted, r.bytes, r.function, r.communicator, r.peer, r.tag, r.ordinal, r.waiter, r.poller, r.handles,
          r.number);
};

constexpr auto frame = [](auto& archive, auto& f) { archive(f.address, f.module); };

constexpr auto site = [](auto& archive, auto& s) {
  archive(s.address, s.module, s.function, s.calls, s.bytes, s.ticks, s.most_ticks, s.saved_seconds, s.served);
  for (auto& count : s.histogram) archive(count);
  archive.list(s.stack, max_frames, frame);
};

constexpr auto module = [](auto& archive, auto& m) {
  archive(m.load_address, m.path);
  archive.list(m.build_id, longest_build_id, [](auto& a, auto& byte) { a(byte); });
};

constexpr auto peer = [](auto& archive, auto& p) {
  archive(p.communicator, p.rank, p.sent_messages, p.sent_bytes, p.received_messages, p.received_bytes);
};

constexpr auto message = [](auto& archive, auto& m) {
  archive(m.communicator, m.peer, m.received, m.tag, m.together, m.number, m.bytes, m.posted, m.waited, m.completed);
};

constexpr auto end_note = [](auto& archive, auto& e) { archive(e.kind, e.at, e.code, e.text); };

template <class Archive, class Rank>
void visit_rank(Archive& archive, Rank& r) {
  archive(r.partial);
  archive(r.host, r.pid, r.process_start, r.pid_namespace, r.state, r.alive, r.visible, r.use.cpu_seconds,
          r.use.io_bytes, r.use.sleeps, r.use.queued_seconds, r.use.tracer, r.wait.call, r.wait.holder,
          r.wait.holder_may_release, r.wait.may_be_served, r.wait.may_go_on, r.wait.children, r.may_be_helped,
          r.wait_status, r.ended, r.ended_in_order, r.launch_rank, r.launch_size, r.world_rank, r.world_size,
          r.functions_known, r.ticks_per_second, r.anchor_ticks, r.anchor_realtime, r.read_at, r.sampling,
          r.threads_dropped, r.communicators_dropped, r.requests_dropped, r.peers_dropped, r.epochs_dropped,
          r.sites_dropped, r.ticks_per_record, r.other_sends, r.other_receives, r.torn);
  archive.maybe(r.end, end_note);
  archive(r.system_exit);
  archive.list(r.threads, max_threads, thread);
  archive.list(r.communicators, max_communicators, communicator);
  archive.list(r.requests, max_requests, request);
  archive.list(r.peers, max_peers, peer);
  archive.list(r.epochs, max_epochs, epoch);
  archive.list(r.amounts, amounts_kept, amounts);
  archive.list(r.messages, max_messages, message);
  if (r.partial) {
    archive.list(r.sites, max_sites, [](auto& a, auto& s) { a(s.calls, s.ticks); });
    return;
  }
  archive(r.path, r.job, r.executable, r.abi, r.watcher, r.launch);
  archive.list(r.sites, max_sites, site);
  archive.list(r.modules, max_modules, module);
}

/// Indices as the record reader leaves them. Those of sites and modules are checked where the sites are known.
bool is_valid(const RankSnapshot& rank) {
  const auto function_valid = [](std::uint16_t f) { return f == no_function || f < recorded_functions().size(); };
  const auto calls_valid = [&](const ThreadSnapshot& t) {
    return (!t.current || function_valid(t.current->function)) &&
           std::all_of(t.finished.begin(), t.finished.end(),
                       [&](const CallSnapshot& c) { return function_valid(c.function); }) &&
           std::all_of(t.probes.begin(), t.probes.end(),
                       [&](const ProbeSnapshot& p) { return function_valid(p.function); }) &&
           function_valid(t.poll_function) && t.slot < max_threads;
  };
  return rank.state <= ProcessState::finalized && rank.world_rank >= -1 && rank.launch_rank >= -1 &&
         rank.launch_rank < std::max(rank.launch_size, 1) && (!rank.end || rank.end->kind <= EndKind::exception) &&
         rank.world_rank < std::max(rank.world_size, 1) && rank.ticks_per_second > 0 &&
         std::all_of(rank.threads.begin(), rank.threads.end(), calls_valid) &&
         std::all_of(rank.communicators.begin(), rank.communicators.end(),
                     [](const CommunicatorSnapshot& c) {
                       return c.index < max_communicators && c.kind > CommunicatorKind::free &&
                              c.kind <= CommunicatorKind::file && c.side <= 1;
                     }) &&
         std::all_of(rank.requests.begin(), rank.requests.end(),
                     [&](const RequestSnapshot& r) { return function_valid(r.function); }) &&
         std::all_of(rank.sites.begin(), rank.sites.end(), [&](const SiteSnapshot& s) {
           return function_valid(s.function) && (s.module == no_index || s.module < rank.modules.size()) &&
                  std::all_of(s.stack.begin(), s.stack.end(), [&](const FrameSnapshot& f) {
                    return f.module == no_index || f.module < rank.modules.size();
                  });
         });
}

void remove_unknown_sites(RankSnapshot& rank) {
  const auto check = [&](CallSnapshot& c) {
    if (c.site >= rank.sites.size()) c.site = no_index;
  };
  for (ThreadSnapshot& t : rank.threads) {
    if (t.current) check(*t.current);
    for (CallSnapshot& c : t.finished) check(c);
  }
  for (CommunicatorSnapshot& c : rank.communicators)
    if (c.site >= rank.sites.size()) c.site = no_index;
}

}  // namespace

void write_snapshot(ByteWriter& to, const RankSnapshot& rank) { visit_rank(to, rank); }

RankSnapshot read_snapshot(ByteReader& from) {
  RankSnapshot rank;
  visit_rank(from, rank);
  if (!from.good() || !is_valid(rank)) {
    from.fail();
    return {};
  }
  remove_unknown_sites(rank);
  return rank;
}

void complete(RankSnapshot& rank, RankSnapshot* before) {
  if (!before) return;
  for (std::string RankSnapshot::*const text : {&RankSnapshot::path, &RankSnapshot::job, &RankSnapshot::executable,
                                                &RankSnapshot::abi, &RankSnapshot::watcher, &RankSnapshot::launch})
    rank.*text = std::move(before->*text);
  rank.modules = std::move(before->modules);
  rank.partial = before->partial || rank.sites.size() > before->sites.size();
  for (std::size_t i = 0; i < std::min(rank.sites.size(), before->sites.size()); ++i) {
    before->sites[i].calls = rank.sites[i].calls, before->sites[i].ticks = rank.sites[i].ticks;
    rank.sites[i] = std::move(before->sites[i]);
  }
}

}  // namespace bestride::inline telemetry
