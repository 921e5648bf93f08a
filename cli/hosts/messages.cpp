// SPDX-License-Identifier: Apache-2.0
#include "cli/hosts/messages.hpp"

#include <algorithm>

namespace bestride::inline cli {
namespace {

constexpr std::size_t most_ranks = 4096, most_stacks = 65536, most_bundled = 65536, deepest_stack = 512,
                      most_problems = 64;

// One description of each message for both directions.

constexpr auto hello_content = [](auto& archive, auto& h) { archive(h.version, h.host, h.job, h.launch, h.agent); };
constexpr auto pulse_content = [](auto& archive, auto& p) { archive(p.suspects, p.ended, p.ranks); };
constexpr auto look_content = [](auto& archive, auto& l) { archive(l.number, l.full, l.finished_calls); };

constexpr auto relay_address_content = [](auto& archive, auto& r) { archive(r.addresses, r.key); };

constexpr auto bundle_content = [](auto& archive, auto& b) {
  archive.list(b, most_bundled, [](auto& a, auto& each) {
    a(each.agent);
    a.long_text(each.bytes);
  });
};

constexpr auto failure_content = [](auto& archive, auto& f) { archive(f.rank, f.pid, f.tid, f.problem); };

constexpr auto stack_content = [](auto& archive, auto& s) {
  archive(s.rank, s.thread, s.cut);
  archive.list(s.frames, deepest_stack, [](auto& a, auto& f) { a(f.function, f.module, f.file, f.line); });
};

template <class Archive, class Stacks, class Problems>
void visit_stacks(Archive& archive, Stacks& s, Problems& problems) {
  archive(s.longest_stop);
  archive.list(s.stacks, most_stacks, stack_content);
  archive.list(s.failures, most_stacks, failure_content);
  archive.list(s.cut, most_stacks, failure_content);
  archive.list(problems, most_problems, [](auto& a, auto& text) { a(text); });
}

template <class Content, class Visit>
std::string encode(MessageKind kind, const Content& content, Visit visit) {
  ByteWriter to;
  to(kind);
  visit(to, content);
  return to.take();
}

template <class Content, class Visit>
std::optional<Content> decode(const std::string& bytes, Visit visit) {
  ByteReader from(bytes);
  MessageKind kind{};
  from(kind);
  Content content;
  visit(from, content);
  return from.complete() ? std::optional(std::move(content)) : std::nullopt;
}

}  // namespace

std::string message(MessageKind kind) {
  return encode(kind, 0, [](auto&, auto&) {});
}
std::string message(const Hello& hello) { return encode(MessageKind::hello, hello, hello_content); }
std::string message(const Pulse& pulse) { return encode(MessageKind::pulse, pulse, pulse_content); }
std::string message(const Look& look) { return encode(MessageKind::look, look, look_content); }

std::string message(const HostRanks& ranks) {
  return encode(MessageKind::ranks, ranks, [](ByteWriter& to, const HostRanks& r) {
    to(r.look, r.now);
    to.list(r.ranks, most_ranks, write_snapshot);
  });
}

std::string message(const HostStacks& stacks) {
  return encode(MessageKind::stacks, stacks, [](ByteWriter& to, const HostStacks& s) {
    const std::vector<std::string> problems(s.problems.begin(), s.problems.end());
    visit_stacks(to, s, problems);
  });
}

std::string message(MessageKind kind, const RelayAddress& address) {
  return encode(kind, address, relay_address_content);
}
std::string message(const std::vector<Bundled>& bundle) { return encode(MessageKind::bundle, bundle, bundle_content); }

std::optional<MessageKind> kind_of(const std::string& bytes) {
  const auto first = bytes.empty() ? 0 : static_cast<unsigned char>(bytes[0]);
  if (first < static_cast<int>(MessageKind::hello) || first > static_cast<int>(MessageKind::end)) return std::nullopt;
  return static_cast<MessageKind>(first);
}

std::optional<Hello> read_hello(const std::string& bytes) { return decode<Hello>(bytes, hello_content); }
std::optional<Pulse> read_pulse(const std::string& bytes) { return decode<Pulse>(bytes, pulse_content); }
std::optional<Look> read_look(const std::string& bytes) { return decode<Look>(bytes, look_content); }

std::optional<RelayAddress> read_relay_address(const std::string& bytes) {
  return decode<RelayAddress>(bytes, relay_address_content);
}
std::optional<std::vector<Bundled>> read_bundle(const std::string& bytes) {
  return decode<std::vector<Bundled>>(bytes, bundle_content);
}

std::optional<HostRanks> read_ranks(const std::string& bytes) {
  return decode<HostRanks>(bytes, [](ByteReader& from, HostRanks& r) {
    from(r.look, r.now);
    from.list(r.ranks, most_ranks, [](ByteReader& a, RankSnapshot& rank) { rank = read_snapshot(a); });
  });
}

std::optional<HostStacks> read_stacks(const std::string& bytes) {
  return decode<HostStacks>(bytes, [](ByteReader& from, HostStacks& s) {
    std::vector<std::string> problems;
    visit_stacks(from, s, problems);
    s.problems.insert(problems.begin(), problems.end());
    // merge_stacks() relies on it.
    if (std::any_of(s.stacks.begin(), s.stacks.end(), [](const RankStack& stack) { return stack.frames.empty(); }))
      from.fail();
  });
}

}  // namespace bestride::inline cli
