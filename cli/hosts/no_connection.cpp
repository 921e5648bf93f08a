// SPDX-License-Identifier: Apache-2.0
// connection.hpp without ZeroMQ.
#include "cli/hosts/connection.hpp"

namespace bestride::inline cli {
namespace {

const Error missing{"this command was built without ZeroMQ (Debian: libzmq3-dev, cppzmq-dev)"};
const std::string nothing;

}  // namespace

struct HeadConnection::State {};
struct AgentConnection::State {};

Result<HeadConnection> HeadConnection::open() { return missing; }
HeadConnection::HeadConnection(HeadConnection&&) noexcept = default;
HeadConnection::~HeadConnection() = default;
const std::string& HeadConnection::addresses() const noexcept { return nothing; }
const std::string& HeadConnection::keys() const noexcept { return nothing; }
std::vector<int> HeadConnection::descriptors() const { return {}; }
std::optional<HeadConnection::Received> HeadConnection::receive() { return std::nullopt; }
void HeadConnection::send(const std::string&, const std::string&) {}

Result<AgentConnection> AgentConnection::connect(const std::string&, const std::string&, const std::string&, double) {
  return missing;
}
AgentConnection::AgentConnection(AgentConnection&&) noexcept = default;
AgentConnection::~AgentConnection() = default;
int AgentConnection::descriptor() const { return -1; }
std::optional<std::string> AgentConnection::receive() { return std::nullopt; }
void AgentConnection::send(const std::string&) {}

}  // namespace bestride::inline cli
