// SPDX-License-Identifier: Apache-2.0
#include "cli/hosts/connection.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>
#include <zmq.hpp>

#include "cli/hosts/messages.hpp"

namespace bestride::inline cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t key_bytes = 32;
constexpr int heartbeat = 2000;           ///< milliseconds
constexpr int queued_messages = 64;       ///< for each connection; more are dropped
constexpr int last_delivery = 500;        ///< milliseconds after the end of a listener
constexpr int largest_message = 1 << 26;  ///< bytes
/// The address of the authentication socket of a ZeroMQ context (ZAP, RFC 27).
constexpr const char* authentication_address = "inproc://zeromq.zap.01";

using Key = std::array<std::uint8_t, key_bytes>;

// Hexadecimal: ZeroMQ's own text form of keys has characters that shells and launchers may change.
std::string hexadecimal(const Key& key) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : key) {
    text.push_back(digits[byte >> 4]);
    text.push_back(digits[byte & 15]);
  }
  return text;
}

bool read_key(const std::string& text, Key* key) {
  if (text.size() != 2 * key_bytes || text.find_first_not_of("0123456789abcdef") != std::string::npos) return false;
  for (std::size_t i = 0; i < key_bytes; ++i)
    (*key)[i] = static_cast<std::uint8_t>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  return true;
}

struct KeyPair {
  Key open, secret;
};

const Error damaged_keys{"BESTRIDE_WATCH_KEY is damaged; it is set by 'bestride run --watch'"};

/// `of_listener`: its public key, or null.
bool read_keys(const std::string& text, Key* of_listener, KeyPair* of_agents) {
  Key unused;
  return text.size() == 6 * key_bytes && read_key(text.substr(0, 2 * key_bytes), of_listener ? of_listener : &unused) &&
         read_key(text.substr(2 * key_bytes, 2 * key_bytes), &of_agents->open) &&
         read_key(text.substr(4 * key_bytes), &of_agents->secret);
}

KeyPair make_keys() {
  char open[41], secret[41];
  if (zmq_curve_keypair(open, secret) != 0) throw zmq::error_t();
  KeyPair pair;
  zmq_z85_decode(pair.open.data(), open);
  zmq_z85_decode(pair.secret.data(), secret);
  return pair;
}

zmq::const_buffer buffer(const Key& key) { return zmq::buffer(key.data(), key.size()); }

/// The IPv4 addresses of this host, without those of the loopback device.
std::vector<std::string> own_addresses() {
  std::vector<std::string> result;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return result;
  for (const ifaddrs* one = all; one; one = one->ifa_next) {
    if (!one->ifa_addr || one->ifa_addr->sa_family != AF_INET || !(one->ifa_flags & IFF_UP) ||
        (one->ifa_flags & IFF_LOOPBACK))
      continue;
    char text[INET_ADDRSTRLEN];
    const auto* const address = reinterpret_cast<const sockaddr_in*>(one->ifa_addr);
    if (inet_ntop(AF_INET, &address->sin_addr, text, sizeof text)) result.emplace_back(text);
  }
  freeifaddrs(all);
  return result;
}

void set_common_options(zmq::socket_t& socket) {
  socket.set(zmq::sockopt::linger, 0);
  socket.set(zmq::sockopt::sndhwm, queued_messages);
  socket.set(zmq::sockopt::heartbeat_ivl, heartbeat);
  socket.set(zmq::sockopt::heartbeat_timeout, 3 * heartbeat);
  socket.set(zmq::sockopt::maxmsgsize, static_cast<std::int64_t>(largest_message));
}

std::string text_of(const zmq::message_t& part) { return {static_cast<const char*>(part.data()), part.size()}; }

}  // namespace

struct Listener::State {
  zmq::context_t context{1};
  zmq::socket_t authentication{context, zmq::socket_type::rep};
  zmq::socket_t agents{context, zmq::socket_type::router};
  KeyPair own = make_keys(), of_agents = make_keys();
  std::string addresses, keys;

  State() { set_common_options(agents); }

  /// Answers the requests of ZeroMQ whether a key is accepted: version, request, domain, address, identity, mechanism,
  /// key.
  void authenticate() {
    for (;;) {
      std::vector<std::string> request;
      zmq::message_t part;
      do {
        if (!authentication.recv(part, zmq::recv_flags::dontwait)) return;
        request.push_back(text_of(part));
      } while (part.more());
      const bool good = request.size() == 7 && request[5] == "CURVE" && request[6].size() == key_bytes &&
                        std::memcmp(request[6].data(), of_agents.open.data(), key_bytes) == 0;
      const std::string answer[] = {
          "1.0", request.size() > 1 ? request[1] : "", good ? "200" : "400", good ? "OK" : "no agent of this job", "",
          ""};
      for (std::size_t i = 0; i < std::size(answer); ++i)
        authentication.send(zmq::buffer(answer[i]),
                            i + 1 < std::size(answer) ? zmq::send_flags::sndmore : zmq::send_flags::none);
    }
  }
};

Listener::Listener(std::unique_ptr<State> state) : state_(std::move(state)) {}
Listener::Listener(Listener&&) noexcept = default;
Listener::~Listener() = default;

Result<Listener> Listener::open() try { return open(std::make_unique<State>()); } catch (const zmq::error_t& error) {
  return Error{std::string("ZeroMQ: ") + error.what()};
}

Result<Listener> Listener::open_with(const std::string& keys) try {
  auto state = std::make_unique<State>();
  if (!read_keys(keys, nullptr, &state->of_agents)) return damaged_keys;
  state->agents.set(zmq::sockopt::linger, last_delivery);
  return open(std::move(state));
} catch (const zmq::error_t& error) {
  return Error{std::string("ZeroMQ: ") + error.what()};
}

Result<Listener> Listener::open(std::unique_ptr<State> state) {
  state->authentication.bind(authentication_address);
  zmq::socket_t& agents = state->agents;
  agents.set(zmq::sockopt::curve_server, true);
  agents.set(zmq::sockopt::curve_secretkey, buffer(state->own.secret));
  agents.set(zmq::sockopt::zap_domain, "bestride");
  agents.bind("tcp://*:*");
  const std::string endpoint = agents.get(zmq::sockopt::last_endpoint);
  const std::string port = endpoint.substr(endpoint.rfind(':'));
  for (const std::string& address : own_addresses())
    state->addresses += (state->addresses.empty() ? "tcp://" : ",tcp://") + address + port;
  if (state->addresses.empty()) return Error{"this host has no network address"};
  state->keys =
      hexadecimal(state->own.open) + hexadecimal(state->of_agents.open) + hexadecimal(state->of_agents.secret);
  return Listener(std::move(state));
}

std::string Listener::own_key() const { return state_->keys.substr(0, 2 * key_bytes); }
std::string Listener::keys_with(const std::string& own_key, const std::string& keys) {
  return keys.size() < 2 * key_bytes ? "" : own_key + keys.substr(2 * key_bytes);
}

const std::string& Listener::addresses() const noexcept { return state_->addresses; }
const std::string& Listener::keys() const noexcept { return state_->keys; }

std::vector<int> Listener::descriptors() const {
  return {state_->agents.get(zmq::sockopt::fd), state_->authentication.get(zmq::sockopt::fd)};
}

std::optional<Listener::Received> Listener::receive() try {
  state_->authenticate();
  zmq::message_t agent, content;
  if (!state_->agents.recv(agent, zmq::recv_flags::dontwait)) return std::nullopt;
  if (!agent.more() || !state_->agents.recv(content, zmq::recv_flags::dontwait)) return Received{};
  for (zmq::message_t rest; content.more() && state_->agents.recv(rest, zmq::recv_flags::dontwait);)
    if (!rest.more()) break;
  return Received{text_of(agent), text_of(content)};
} catch (const zmq::error_t&) {
  return std::nullopt;
}

void Listener::send(const std::string& agent, const std::string& bytes) try {
  if (state_->agents.send(zmq::buffer(agent), zmq::send_flags::sndmore | zmq::send_flags::dontwait))
    state_->agents.send(zmq::buffer(bytes), zmq::send_flags::dontwait);
} catch (const zmq::error_t&) {
}

namespace {

/// The agents of one process, of which a simulation has many, share the threads of one context.
std::shared_ptr<zmq::context_t> agents_context() {
  static std::weak_ptr<zmq::context_t> known;
  auto context = known.lock();
  if (!context) known = context = std::make_shared<zmq::context_t>(1);
  return context;
}

}  // namespace

struct AgentConnection::State {
  std::shared_ptr<zmq::context_t> context = agents_context();
  /// One for each address of the listener, because some can't be reached from here. After the answer: only the one that
  /// answered first.
  std::vector<zmq::socket_t> sockets;
  Answer answer = Answer::none;
};

AgentConnection::AgentConnection(std::unique_ptr<State> state) : state_(std::move(state)) {}
AgentConnection::AgentConnection(AgentConnection&&) noexcept = default;
AgentConnection& AgentConnection::operator=(AgentConnection&&) noexcept = default;
AgentConnection::~AgentConnection() = default;

Result<AgentConnection> AgentConnection::begin(const std::string& addresses, const std::string& keys,
                                               const std::string& hello) try {
  Key of_listener;
  KeyPair own;
  if (!read_keys(keys, &of_listener, &own)) return damaged_keys;
  auto state = std::make_unique<State>();
  for (std::size_t from = 0; from <= addresses.size();) {
    const std::size_t end = std::min(addresses.find(',', from), addresses.size());
    zmq::socket_t& socket = state->sockets.emplace_back(*state->context, zmq::socket_type::dealer);
    set_common_options(socket);
    socket.set(zmq::sockopt::curve_serverkey, buffer(of_listener));
    socket.set(zmq::sockopt::curve_publickey, buffer(own.open));
    socket.set(zmq::sockopt::curve_secretkey, buffer(own.secret));
    socket.connect(addresses.substr(from, end - from));
    socket.send(zmq::buffer(hello), zmq::send_flags::dontwait);
    from = end + 1;
  }
  return AgentConnection(std::move(state));
} catch (const zmq::error_t& error) {
  return Error{std::string("ZeroMQ: ") + error.what()};
}

Result<AgentConnection> AgentConnection::connect(const std::string& addresses, const std::string& keys,
                                                 const std::string& hello, double seconds) {
  auto begun = begin(addresses, keys, hello);
  if (!begun) return begun;
  for (const auto until = Clock::now() + std::chrono::duration<double>(seconds); begun->answer() == Answer::none;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    if (left.count() <= 0) return Error{"no answer from 'bestride run' at " + addresses};
    std::vector<pollfd> entries;
    for (const int descriptor : begun->descriptors()) entries.push_back({descriptor, POLLIN, 0});
    poll(entries.data(), entries.size(), static_cast<int>(left.count()));
  }
  if (begun->answer() == Answer::refused) return Error{"'bestride run' has another version"};
  return begun;
}

AgentConnection::Answer AgentConnection::answer() try {
  for (std::size_t i = 0; state_->answer == Answer::none && i < state_->sockets.size(); ++i) {
    zmq::message_t content;
    if (!state_->sockets[i].recv(content, zmq::recv_flags::dontwait)) continue;
    state_->answer = kind_of(text_of(content)) == MessageKind::welcome ? Answer::welcome : Answer::refused;
    zmq::socket_t first = std::move(state_->sockets[i]);
    state_->sockets.clear();
    state_->sockets.push_back(std::move(first));
  }
  return state_->answer;
} catch (const zmq::error_t&) {
  return Answer::none;
}

std::vector<int> AgentConnection::descriptors() const {
  std::vector<int> result;
  for (const zmq::socket_t& socket : state_->sockets) result.push_back(socket.get(zmq::sockopt::fd));
  return result;
}

std::optional<std::string> AgentConnection::receive() try {
  zmq::message_t content;
  if (!state_->sockets.front().recv(content, zmq::recv_flags::dontwait)) return std::nullopt;
  return text_of(content);
} catch (const zmq::error_t&) {
  return std::nullopt;
}

void AgentConnection::send(const std::string& bytes) try {
  state_->sockets.front().send(zmq::buffer(bytes), zmq::send_flags::dontwait);
} catch (const zmq::error_t&) {
}

}  // namespace bestride::inline cli
