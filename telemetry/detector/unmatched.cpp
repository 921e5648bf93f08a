// SPDX-License-Identifier: Apache-2.0
#include "telemetry/detector/unmatched.hpp"

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "telemetry/waits/messages.hpp"

namespace bestride::inline telemetry {
namespace {

/// The sender's last calls that are looked at if it is not known how many of its messages were received. The receiver's
/// are all of those in its snapshot, which reach back further.
constexpr std::size_t last_calls = 16;

/// Messages that a rank must have received from another one before they count as usual.
constexpr std::int64_t usual_messages = 2;
/// The same of their tags.
constexpr std::size_t usual_tags = 3;

std::uint64_t uid_of(const RankSnapshot& rank, std::uint32_t communicator) {
  const CommunicatorSnapshot* const known = rank.communicator(communicator);
  return known ? known->uid : 0;
}

const CommunicatorSnapshot* find(const RankSnapshot& rank, std::uint64_t uid) {
  for (const CommunicatorSnapshot& communicator : rank.communicators)
    if (communicator.uid == uid) return &communicator;
  return nullptr;
}

/// The rank by which `other` names a process on a communicator; no_rank if it can't.
std::int32_t rank_in(const RankSnapshot& rank, std::uint64_t uid, const RankSnapshot& other) {
  const CommunicatorSnapshot *const its = find(rank, uid), *const others = find(other, uid);
  const bool can_name = its && others && (its->kind != CommunicatorKind::inter || its->side != others->side);
  return can_name ? its->rank : no_rank;
}

bool is_probe(std::uint16_t function) {
  const std::string& name = function_name(function);
  return name.find("probe") != std::string::npos || name.find("Probe") != std::string::npos;
}

/// The messages from or to `peer` that `rank` has counted: sends that have returned, and receives that were posted.
std::optional<std::int64_t> counted(const RankSnapshot& rank, const RankSnapshot& peer, bool sends) {
  std::optional<std::int64_t> messages;
  for (const PeerSnapshot& known : rank.peers) {
    const CommunicatorSnapshot* const in =
        known.communicator == no_index ? nullptr : rank.communicator(known.communicator);
    const std::int32_t number = in ? rank_in(peer, in->uid, rank) : peer.world_rank;
    if (static_cast<std::int32_t>(known.rank) == number)
      messages =
          messages.value_or(0) + static_cast<std::int64_t>(sends ? known.sent_messages : known.received_messages);
  }
  return messages;
}

/// Calls visit(message) for the sends of a rank that its snapshot has, the newest first, until it returns true.
template <class Visit>
bool find_send(const RankSnapshot& sender, Visit visit) {
  bool found = false;
  const auto look = [&](const Message& message) {
    found = found || (message.kind == CallKind::send && message.peer >= 0 && visit(message));
  };
  for (const ThreadSnapshot& thread : sender.threads)
    if (thread.current) each_message(*thread.current, look);
  for (const ThreadSnapshot& thread : sender.threads)
    for (std::size_t i = thread.finished.size(); i > 0 && !found; --i) each_message(thread.finished[i - 1], look);
  return found;
}

/// Calls visit(Envelope, bytes) for the messages of this kind in which a thread is, or for which one waits or polls.
template <class Visit>
void each_awaited(const RankSnapshot& rank, CallKind kind, Visit visit) {
  const auto add = [&](const Message& message) {
    if (message.kind == kind)
      visit(Envelope{uid_of(rank, message.communicator), message.peer, message.tag}, message.bytes);
  };
  for (const ThreadSnapshot& thread : rank.threads) {
    if (thread.current) each_message(*thread.current, add);
    each_polled_probe(thread, add);
  }
  for (const RequestSnapshot& request : rank.requests)
    if (request.waiter != 0 || request.poller != 0) each_message(request, add);
}

/// It starts or completes messages of this kind without an envelope in its record, or only prepares them.
bool hides_messages(std::uint16_t function, CallKind kind) {
  const std::string& name = function_name(function);
  if (name == "MPI_Start" || name == "MPI_Startall" || name.ends_with("_init")) return true;
  return kind == CallKind::send ? name == "MPI_Bsend" || name == "MPI_Ibsend"
                                : name == "MPI_Mrecv" || name == "MPI_Imrecv";
}

/// The messages of one kind with one rank, by the places of their tags in the order of a thread's messages.
struct Stream {
  CallKind kind;
  std::uint32_t communicator;
  std::int32_t peer;
  bool operator==(const Stream&) const = default;
};
/// The last place with this tag before `end`, or the first one from `begin` on.
std::optional<std::size_t> last_before(const std::vector<Message>& messages, const Stream& stream, std::int32_t tag,
                                       std::size_t end) {
  for (std::size_t i = end; i > 0; --i)
    if (const Message& each = messages[i - 1];
        Stream{each.kind, each.communicator, each.peer} == stream && each.tag == tag)
      return i - 1;
  return std::nullopt;
}
std::optional<std::size_t> first_from(const std::vector<Message>& messages, const Stream& stream, std::int32_t tag,
                                      std::size_t begin) {
  for (std::size_t i = begin; i < messages.size(); ++i)
    if (const Message& each = messages[i]; Stream{each.kind, each.communicator, each.peer} == stream && each.tag == tag)
      return i;
  return std::nullopt;
}

/// A thread has sent `peer` a message with the tag `sent` instead of `wanted`. True if it has left one out: if each
/// step has a tag of its own, its other messages, which have had both tags, show whether this message is that of the
/// later step, by the order that they had in the step before.
bool has_left_out(const ThreadSnapshot& thread, std::uint32_t communicator, std::int32_t peer, std::int32_t sent,
                  std::int32_t wanted) {
  std::vector<Message> messages;
  const auto add = [&](const Message& message) { messages.push_back(message); };
  for (const CallSnapshot& call : thread.finished) each_message(call, add);
  if (thread.current) each_message(*thread.current, add);
  const Stream stream{CallKind::send, communicator, peer};
  const auto message = last_before(messages, stream, sent, messages.size());
  std::size_t before = message.value_or(0);
  while (before > 0 &&
         Stream{messages[before - 1].kind, messages[before - 1].communicator, messages[before - 1].peer} != stream)
    --before;
  if (before-- == 0) return false;
  const std::int32_t last_tag = messages[before].tag;
  if (last_tag == sent || last_tag == wanted) return false;
  bool left_out = false;
  std::vector<Stream> seen = {stream};
  for (const Message& each : messages) {
    const Stream other{each.kind, each.communicator, each.peer};
    if (std::find(seen.begin(), seen.end(), other) != seen.end()) continue;
    seen.push_back(other);
    const auto at_wanted = last_before(messages, other, wanted, messages.size());
    const auto at_last = at_wanted ? last_before(messages, other, last_tag, *at_wanted) : std::nullopt;
    const auto at_sent = at_wanted ? first_from(messages, other, sent, *at_wanted) : std::nullopt;
    if (!at_last || !at_sent) continue;
    if ((*at_last < before ? *at_sent : *at_wanted) > *message) return false;
    left_out = true;
  }
  return left_out;
}

/// True if the calls of a section, which has more messages than the ones before it, show that the rank has not left out
/// the collective call and gone on, but makes one message more before it: where the sections before it, which are
/// alike, complete their messages, it begins another one; or its last message is at the place of their last one, as in
/// a loop. The newest calls are first.
bool is_one_more(const std::vector<const CallSnapshot*>& now, const std::vector<const CallSnapshot*>& before,
                 const std::vector<const CallSnapshot*>& usual) {
  const auto alike = [](const CallSnapshot* a, const CallSnapshot* b) { return a->function == b->function; };
  if (before.empty() || now.size() <= before.size() ||
      !std::equal(before.begin(), before.end(), usual.begin(), usual.end(), alike))
    return false;
  if (!std::equal(before.rbegin(), before.rend(), now.rbegin(), alike)) return true;
  const CallSnapshot& next = *now[now.size() - 1 - before.size()];
  return next.site != no_index && next.site == before.front()->site && next.site != before.back()->site;
}

/// The calls of a rank before its last collective call, back to the one before that, and so on.
class Sections {
 public:
  explicit Sections(const ThreadSnapshot& thread) {
    if (thread.current && thread.current->ordinal != 0) ends_.push_back({thread.finished.size(), thread.current->site});
    for (std::size_t i = thread.finished.size(); i > 0; --i)
      if (thread.finished[i - 1].ordinal != 0) ends_.push_back({i - 1, thread.finished[i - 1].site});
    calls_ = thread.finished;
  }
  /// The number of calls in the section that ends with the n-th last collective call for which `counts` is true; the
  /// section begins after another collective call.
  template <class Counts>
  std::int64_t count(std::size_t n, Counts counts) const {
    std::int64_t result = 0;
    for (std::size_t i = ends_[n + 1].at + 1; i < ends_[n].at; ++i) result += counts(calls_[i]);
    return result;
  }
  /// Those that end at the place of the last one, the newest first.
  std::vector<std::size_t> alike() const {
    std::vector<std::size_t> result;
    for (std::size_t n = 0; n + 1 < ends_.size(); ++n)
      if (ends_[n].site != no_index && ends_[n].site == ends_[0].site) result.push_back(n);
    return result;
  }

 private:
  struct End {
    std::size_t at;  ///< index in calls_
    std::uint32_t site;
  };
  std::vector<End> ends_;  ///< the newest first
  std::span<const CallSnapshot> calls_;
};

/// Each tag follows from the one before by the same step, as if it were the number of the message.
bool are_numbers(const std::vector<std::int32_t>& tags) {
  for (std::size_t i = 2; i < tags.size(); ++i)
    if (std::int64_t{tags[i]} - tags[i - 1] != std::int64_t{tags[1]} - tags[0]) return false;
  return tags[0] != tags[1];
}

/// Tags of earlier messages: which of two is the wrong one for the next message. If they are numbers, the one that
/// occurred before; else, unless each message had a tag of its own, the one that did not.
bool is_less_usual(const std::vector<std::int32_t>& tags, std::int32_t tag, std::int32_t than) {
  if (tags.size() < usual_tags) return false;
  std::vector<std::int32_t> different = tags;
  std::sort(different.begin(), different.end());
  different.erase(std::unique(different.begin(), different.end()), different.end());
  const auto occurs = [&](std::int32_t each) { return std::binary_search(different.begin(), different.end(), each); };
  if (different.size() == tags.size()) return are_numbers(tags) && occurs(tag) && !occurs(than);
  return !occurs(tag) && occurs(than);
}

}  // namespace

Receives::Receives(const RankSnapshot& receiver) : receiver_(receiver) {
  each_awaited(receiver, CallKind::receive, [this](const Envelope& awaited, std::uint64_t bytes) {
    awaited_.push_back({awaited, bytes});
  });
}

void Receives::find_posted() {
  posted_.emplace();
  const auto post = [this](const Message& message) {
    if (message.kind == CallKind::receive)
      posted_->insert({uid_of(receiver_, message.communicator), message.peer, message.tag});
  };
  for (const ThreadSnapshot& thread : receiver_.threads)
    for (const CallSnapshot& call : thread.finished) each_message(call, post);
  each_posted_message(receiver_, post);
}

bool Receives::has_taken(std::uint64_t uid, std::int32_t from, std::int32_t tag) {
  if (!posted_) find_posted();
  for (const std::int32_t peer : {from, std::int32_t{any_rank}})
    for (const std::int32_t with : {tag, any_tag})
      if (posted_->count({uid, peer, with}) != 0) return true;
  return false;
}

std::vector<std::int32_t> Receives::tags_from(const RankSnapshot& sender, std::uint64_t uid) const {
  std::vector<std::int32_t> tags;
  const std::int32_t from = rank_in(sender, uid, receiver_);
  const auto is_one = [&](const Message& message) {
    return message.kind == CallKind::receive && !is_probe(message.function) && message.peer == from &&
           message.tag >= 0 && uid_of(receiver_, message.communicator) == uid;
  };
  for (const ThreadSnapshot& thread : receiver_.threads)
    for (const CallSnapshot& call : thread.finished)
      each_message(call, [&](const Message& message) {
        if (is_one(message)) tags.push_back(message.tag);
      });
  // The calls that have posted the receives which are not complete have ended, too.
  for (const RequestSnapshot& request : receiver_.requests)
    each_message(request, [&](const Message& message) {
      if (!is_one(message)) return;
      if (const auto last = std::find(tags.rbegin(), tags.rend(), message.tag); last != tags.rend())
        tags.erase(std::next(last).base());
    });
  return tags;
}

std::int64_t Receives::missing_from(const RankSnapshot& sender) const {
  if (receiver_.other_receives > 0 || sender.other_sends > 0 || receiver_.peers_dropped > 0) return -1;
  const std::optional<std::int64_t> sent = counted(sender, receiver_, /*sends=*/true);
  return sent ? *sent - received_from(sender) : -1;
}

std::int64_t Receives::pending_from(const RankSnapshot& sender) const {
  std::int64_t pending = 0;
  for (const RequestSnapshot& request : receiver_.requests)
    each_message(request, [&](const Message& message) {
      pending += message.kind == CallKind::receive && message.peer >= 0 &&
                 message.peer == rank_in(sender, uid_of(receiver_, message.communicator), receiver_);
    });
  return pending;
}

std::int64_t Receives::received_from(const RankSnapshot& sender) const {
  return counted(receiver_, sender, /*sends=*/false).value_or(0) - pending_from(sender);
}

std::optional<TagMismatch> Receives::find_mismatch(const RankSnapshot& sender, bool any_communicator) {
  const auto is_from = [&](const Awaited& awaited) {
    return awaited.peer == any_rank || awaited.peer == rank_in(sender, awaited.uid, receiver_);
  };
  if (std::none_of(awaited_.begin(), awaited_.end(), is_from)) return std::nullopt;
  const std::int64_t missing = missing_from(sender);
  // It awaits a tag, or names a communicator, that none of its messages from the sender has had.
  const auto awaits_new_tag = [&](std::uint64_t uid) {
    const std::vector<std::int32_t> tags = tags_from(sender, uid);
    return tags.size() >= usual_tags && std::any_of(awaited_.begin(), awaited_.end(), [&](const Awaited& awaited) {
             if (!is_from(awaited)) return false;
             if (awaited.uid != uid) return any_communicator && tags_from(sender, awaited.uid).empty();
             return awaited.tag >= 0 && std::find(tags.begin(), tags.end(), awaited.tag) == tags.end();
           });
  };
  std::map<std::uint64_t, bool> new_tags;  // by communicator
  // Messages to the receiver for which it has posted no receive, else, `also_usual`, those with tags that it has
  // received before.
  std::vector<Message> present, past;  // the newest first
  const auto collect = [&](bool also_usual) {
    const auto add_to = [&, also_usual](std::vector<Message>& messages) {
      return [&, also_usual](const Message& sent) {
        const std::uint64_t uid = uid_of(sender, sent.communicator);
        if (sent.kind != CallKind::send || uid == 0 || sent.peer != rank_in(receiver_, uid, sender)) return;
        if (also_usual && new_tags.count(uid) == 0) new_tags[uid] = awaits_new_tag(uid);
        if (also_usual ? new_tags[uid] : !has_taken(uid, rank_in(sender, uid, receiver_), sent.tag))
          messages.push_back(sent);
      };
    };
    for (const ThreadSnapshot& thread : sender.threads)
      if (thread.current) each_message(*thread.current, add_to(present));
    for (const ThreadSnapshot& thread : sender.threads) {
      const std::size_t count = thread.finished.size();
      const std::size_t calls = missing == 0 ? 0 : missing > 0 ? count : std::min(count, last_calls);
      for (std::size_t i = count; i > count - calls; --i) each_message(thread.finished[i - 1], add_to(past));
    }
  };
  collect(false);
  if (missing > 0 && present.empty() && past.empty()) collect(true);
  // More than are missing have been received by calls whose envelope is not known.
  if (missing > 0 && past.size() > static_cast<std::size_t>(missing)) past.resize(static_cast<std::size_t>(missing));
  std::vector<Message> sends = present;
  sends.insert(sends.end(), past.begin(), past.end());
  if (missing > 0) std::reverse(sends.begin(), sends.end());
  std::optional<TagMismatch> best;
  int best_fit = 0;
  for (const Message& sent : sends)
    for (const Awaited& awaited : awaited_) {
      const std::uint64_t uid = uid_of(sender, sent.communicator);
      const bool same = awaited.uid == uid;
      if (!is_from(awaited) ||
          !(same || (any_communicator && awaited.peer != any_rank && tags_match(sent.tag, awaited.tag))))
        continue;
      const int fit = (same ? 4 : 1) + (awaited.bytes == sent.bytes                        ? 2
                                        : awaited.bytes == 0 || awaited.bytes > sent.bytes ? 1
                                                                                           : 0);
      if (fit <= best_fit) continue;
      best_fit = fit;
      best = TagMismatch{sender.world_rank, receiver_.world_rank, sent.tag, awaited.tag, !same};
      best->by_receiver = same ? is_less_usual(tags_from(sender, uid), awaited.tag, sent.tag)
                               : tags_from(sender, uid).size() >= usual_tags && tags_from(sender, awaited.uid).empty();
      best->left_out = same && !best->by_receiver &&
                       std::any_of(sender.threads.begin(), sender.threads.end(), [&](const auto& thread) {
                         return has_left_out(thread, sent.communicator, sent.peer, sent.tag, awaited.tag);
                       });
    }
  return best;
}

std::optional<WrongPeer> Receives::find_wrong_peer(const RankSnapshot& sender, const Members& members) {
  if (receiver_.other_receives > 0 || receiver_.peers_dropped > 0 || sender.peers_dropped > 0) return std::nullopt;
  const std::int64_t before = received_from(sender);
  for (const Awaited& awaited : awaited_) {
    if (awaited.uid == 0 || awaited.peer < 0 || awaited.peer != rank_in(sender, awaited.uid, receiver_)) continue;
    const bool never = before == 0 && counted(sender, receiver_, /*sends=*/true).value_or(0) == 0;
    const auto found = before >= usual_messages ? find_wrong_destination(sender, awaited, members)
                       : never                  ? find_wrong_source(sender, awaited, members)
                                                : std::nullopt;
    if (found) return found;
  }
  return std::nullopt;
}

std::optional<WrongPeer> Receives::find_wrong_destination(const RankSnapshot& sender, const Awaited& awaited,
                                                          const Members& members) const {
  std::optional<WrongPeer> found;
  std::vector<std::int32_t> seen;
  find_send(sender, [&](const Message& sent) {
    const CommunicatorSnapshot* const on = sender.communicator(sent.communicator);
    if (!on || on->uid != awaited.uid || !tags_match(sent.tag, awaited.tag) ||
        std::find(seen.begin(), seen.end(), sent.peer) != seen.end())
      return false;
    seen.push_back(sent.peer);
    const RankSnapshot* const other = members.find(members.world_rank(*on, sent.peer));
    if (!other || other == &receiver_ || other == &sender || other->other_receives > 0 || other->peers_dropped > 0 ||
        counted(*other, sender, /*sends=*/false).value_or(0) > 0 ||
        Receives(*other).has_taken(awaited.uid, rank_in(sender, awaited.uid, *other), sent.tag))
      return false;
    found = WrongPeer{sender.world_rank, receiver_.world_rank, other->world_rank, sent.tag, false};
    return true;
  });
  return found;
}

std::optional<WrongPeer> Receives::find_wrong_source(const RankSnapshot& named, const Awaited& awaited,
                                                     const Members& members) const {
  for (const PeerSnapshot& peer : receiver_.peers) {
    const CommunicatorSnapshot* const on =
        peer.communicator == no_index ? nullptr : receiver_.communicator(peer.communicator);
    const auto number = static_cast<std::int32_t>(peer.rank);
    const RankSnapshot* const other = members.find(on ? members.world_rank(*on, number) : number);
    if (!other || other == &named || other == &receiver_ || received_from(*other) < usual_messages) continue;
    const std::int32_t by_receiver = rank_in(*other, awaited.uid, receiver_);
    const std::int32_t by_sender = rank_in(receiver_, awaited.uid, *other);
    if (std::any_of(awaited_.begin(), awaited_.end(),
                    [&](const Awaited& each) { return each.uid == awaited.uid && each.peer == by_receiver; }))
      continue;
    // A send in which it is has not been counted.
    std::int64_t unreceived =
        counted(*other, receiver_, /*sends=*/true).value_or(0) - received_from(*other) - pending_from(*other);
    for (const ThreadSnapshot& thread : other->threads)
      if (thread.current && may_block(thread.current->function, false))
        each_message(*thread.current, [&](const Message& sent) {
          unreceived +=
              sent.kind == CallKind::send && sent.peer == by_sender && uid_of(*other, sent.communicator) == awaited.uid;
        });
    std::optional<WrongPeer> found;
    find_send(*other, [&](const Message& sent) {
      if (sent.peer != by_sender || uid_of(*other, sent.communicator) != awaited.uid || unreceived-- <= 0) return false;
      if (tags_match(sent.tag, awaited.tag))
        found = WrongPeer{other->world_rank, receiver_.world_rank, named.world_rank, sent.tag, true};
      return found.has_value();
    });
    if (found) return found;
  }
  return std::nullopt;
}

std::optional<std::int64_t> more_than_usual(const RankSnapshot& waiter, const RankSnapshot& peer, bool receives) {
  constexpr std::size_t usual = 2;
  const CallKind own = receives ? CallKind::receive : CallKind::send;
  const CallKind other = receives ? CallKind::send : CallKind::receive;
  std::vector<Envelope> missing;  // as `peer` names it
  each_awaited(waiter, own, [&](const Envelope& awaited, std::uint64_t) {
    if (awaited.uid != 0 && awaited.peer >= 0 && awaited.peer == rank_in(peer, awaited.uid, waiter))
      missing.push_back({awaited.uid, rank_in(waiter, awaited.uid, peer), awaited.tag});
  });
  if (missing.empty() || peer.threads.size() != 1) return std::nullopt;
  const Sections sections(peer.threads.front());
  const std::vector<std::size_t> alike = sections.alike();
  if (alike.size() <= usual) return std::nullopt;
  bool any = false;  // some messages are not known
  bool with_tag = true;
  const auto messages = [&](const CallSnapshot& call) {
    any = any || hides_messages(call.function, other);
    std::int64_t found = 0;
    each_message(call, [&](const Message& message) {
      if (message.kind != other) return;
      any = any || message.peer == any_rank;
      const std::uint64_t uid = uid_of(peer, message.communicator);
      found += std::any_of(missing.begin(), missing.end(), [&](const Envelope& each) {
        return each.uid == uid && each.peer == message.peer &&
               (!with_tag || (receives ? tags_match(message.tag, each.tag) : tags_match(each.tag, message.tag)));
      });
    });
    return found;
  };
  std::int64_t counts[usual + 1];
  const auto count = [&] {
    for (std::size_t i = 0; i <= usual; ++i) counts[i] = sections.count(alike[i], messages);
  };
  count();
  if (counts[1] == 0 && counts[2] == 0) {
    // The tag may be that of a step.
    with_tag = false;
    count();
    // As many messages, but perhaps with another tag than usual.
    if (counts[1] > 0 && counts[0] == counts[1]) return std::nullopt;
  }
  if (any || counts[1] != counts[2]) return std::nullopt;
  return counts[0] - counts[1];
}

std::optional<OmittedCall> omitted_call(const RankSnapshot& waiter, const WaitCondition& collective, bool receives) {
  if (waiter.threads.size() != 1 || collective.communicator == 0) return std::nullopt;
  const ThreadSnapshot& thread = waiter.threads.front();
  const CallKind kind = receives ? CallKind::receive : CallKind::send;
  const std::string& function = function_name(collective.function);
  constexpr std::size_t sections = 3;
  std::int64_t counts[sections] = {};                // since the last such call, and before
  std::vector<const CallSnapshot*> calls[sections];  // the newest first
  std::size_t section = 0;
  const auto count = [&](const CallSnapshot& call) {
    calls[section].push_back(&call);
    // A program that probes may do so any number of times.
    each_message(
        call, [&](const Message& message) { counts[section] += message.kind == kind && !is_probe(message.function); });
    return !hides_messages(call.function, kind);
  };
  if (thread.current && !count(*thread.current)) return std::nullopt;
  for (std::size_t i = thread.finished.size(); i > 0; --i) {
    const CallSnapshot& call = thread.finished[i - 1];
    if (!count(call)) return std::nullopt;
    if (call.ordinal == 0 || uid_of(waiter, call.communicator) != collective.communicator ||
        function_name(call.function) != function || ++section < sections)
      continue;
    if (counts[1] == 0 || counts[1] != counts[2] || counts[0] <= counts[1]) return std::nullopt;
    for (auto& each : calls) each.pop_back();  // the collective call before the section
    if (is_one_more(calls[0], calls[1], calls[2])) return std::nullopt;
    return OmittedCall{
        waiter.world_rank, collective.function, collective.communicator, collective.ordinal, receives, counts[0],
        counts[1]};
  }
  return std::nullopt;
}

bool passes_over_messages(const RankSnapshot& sender, const RankSnapshot& receiver) {
  constexpr std::size_t many = 16;
  std::optional<Envelope> last;
  for (const ThreadSnapshot& thread : sender.threads)
    for (std::size_t i = thread.finished.size() - std::min(thread.finished.size(), last_calls);
         i < thread.finished.size(); ++i)
      each_message(thread.finished[i], [&](const Message& sent) {
        const std::uint64_t uid = uid_of(sender, sent.communicator);
        if (sent.kind == CallKind::send && uid != 0 && sent.peer == rank_in(receiver, uid, sender))
          last = Envelope{uid, rank_in(sender, uid, receiver), sent.tag};
      });
  if (!last) return false;
  std::size_t probes = 0;
  for (const ThreadSnapshot& thread : receiver.threads)
    for (const CallSnapshot& call : thread.finished)
      each_message(call, [&](const Message& probe) {
        if (probe.kind == CallKind::receive && probe.peer == any_rank && is_probe(probe.function) &&
            uid_of(receiver, probe.communicator) == last->uid && tags_match(last->tag, probe.tag))
          ++probes;
      });
  return probes >= many;
}

std::optional<std::int64_t> unanswered(const RankSnapshot& rank, const RankSnapshot& hub) {
  if (rank.other_sends > 0 || rank.other_receives > 0 || rank.peers_dropped > 0) return std::nullopt;
  const auto received = counted(rank, hub, /*sends=*/false), sent = counted(rank, hub, /*sends=*/true);
  return received ? std::optional(*received - sent.value_or(0)) : std::nullopt;
}

bool has_unreceived_messages(const RankSnapshot& sender, const RankSnapshot& receiver) {
  for (const ThreadSnapshot& thread : receiver.threads)
    for (const CallSnapshot& call : thread.finished)
      if (kind_of(call.function, call.ordinal != 0) == CallKind::receive && call.peer == any_rank &&
          !is_probe(call.function))
        return false;
  std::uint64_t sent = 0, received = 0;
  each_current_message(sender, [&](const Message& message) {  // counted when its call returns
    const std::uint64_t uid = uid_of(sender, message.communicator);
    if (message.kind == CallKind::send && uid != 0 && message.peer == rank_in(receiver, uid, sender)) ++sent;
  });
  for (const PeerSnapshot& peer : sender.peers)
    if (peer.communicator == no_index && static_cast<std::int32_t>(peer.rank) == receiver.world_rank)
      sent += peer.sent_messages;
  for (const PeerSnapshot& peer : receiver.peers)
    if (peer.communicator == no_index && static_cast<std::int32_t>(peer.rank) == sender.world_rank)
      received += peer.received_messages;
  return sent > received;
}

}  // namespace bestride::inline telemetry
