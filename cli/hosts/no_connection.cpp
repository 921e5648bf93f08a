// SPDX-License-Identifier: Apache-2.0
// connection.hpp without ZeroMQ.
#include "cli/hosts/connection.hpp"

namespace bestride::inline cli {
namespace {

const Error missing{"this command was built without ZeroMQ (Debian: libzmq3-dev, cppzmq-dev)"};
const std::string nothing;

}  // namespace

struct Listener::State {};
struct AgentConnection::State {};

Result<Listener> Listener::open() { return missing; }
Result<Listener> Listener::open_with(const std::string&) { return missing; }
Listener::Listener(Listener&&) noexcept = default;
Listener::~Listener() = default;
const std::string& Listener::addresses() const noexcept { return nothing; }
const std::string& Listener::keys() const noexcept { return nothing; }
std::string Listener::own_key() const { return nothing; }
std::string Listener::keys_with(const std::string&, const std::string&) { return nothing; }
std::vector<int> Listener::descriptors() const { return {}; }
std::optional<Listener::Received> Listener::receive() { return std::nullopt; }
void Listener::send(const std::string&, const std::string&) {}

Result<AgentConnection> AgentConnection::begin(const std::string&, const std::string&, const std::string&) {
  return missing;
}
Result<AgentConnection> AgentConnection::connect(const std::string&, const std::string&, const std::string&, double) {
  return missing;
}
AgentConnection::AgentConnection(AgentConnection&&) noexcept = default;
AgentConnection& AgentConnection::operator=(AgentConnection&&) noexcept = default;
AgentConnection::~AgentConnection() = default;
AgentConnection::Answer AgentConnection::answer() { return Answer::none; }
std::vector<int> AgentConnection::descriptors() const { return {}; }
std::optional<std::string> AgentConnection::receive() { return std::nullopt; }
void AgentConnection::send(const std::string&) {}

}  // namespace bestride::inline cli
