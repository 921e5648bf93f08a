// SPDX-License-Identifier: Apache-2.0
#include "model/discover.hpp"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "model/processor_sources.hpp"
#include "model/topology_file.hpp"

namespace bestride::inline model {
namespace {

/// What each rank sends to all others, as MPI_INT.
using Record = std::array<int, 4>;  // of RankLocation: node, group, domain, core
constexpr int host_bytes = 256;
using HostName = std::array<char, host_bytes>;

/// During its lifetime errors on MPI_COMM_WORLD are returned instead of aborting the job: they concern only this
/// library, and the job can continue without a topology.
class ErrorsReturned {
 public:
  explicit ErrorsReturned(const DiscoverCalls& calls) : calls_(calls) {
    known_ = calls_.get_errhandler(MPI_COMM_WORLD, &before_) == MPI_SUCCESS;
    if (known_) calls_.set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  }
  ~ErrorsReturned() {
    if (!known_) return;
    calls_.set_errhandler(MPI_COMM_WORLD, before_);
    calls_.errhandler_free(&before_);
  }
  ErrorsReturned(const ErrorsReturned&) = delete;
  ErrorsReturned& operator=(const ErrorsReturned&) = delete;

 private:
  const DiscoverCalls& calls_;
  MPI_Errhandler before_ = MPI_ERRHANDLER_NULL;
  bool known_ = false;
};

class Discoverer {
 public:
  Discoverer(const DiscoverCalls& calls, const DiscoverRequest& request)
      : calls_(calls), request_(request), sound_(request.sound) {}

  Discovery run() noexcept {
    note(calls_.comm_rank(MPI_COMM_WORLD, &rank_));
    note(calls_.comm_size(MPI_COMM_WORLD, &ranks_));
    int wanted = request_.wanted;
    int anyone = 0;
    // This agreement comes first, so that ranks with different settings can't enter different collectives.
    if (calls_.allreduce(&wanted, &anyone, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD) != MPI_SUCCESS)
      return std::move(found_);
    if (!anyone) return one_node();
    share_file();
    mine_[0] = leader_of_my_node();
    prepare();
    if (!agreed()) return without();
    gather();
    std::optional<Topology> topology;
    attempt([&] { topology = build(); });
    if (!agreed()) return without();
    found_.topology = std::move(topology);
    return std::move(found_);
  }

 private:
  /// A rank with an error still takes part in every collective. Only agreed() ends the discovery early, on all ranks at
  /// the same point.
  void note(int error) noexcept { sound_ &= error == MPI_SUCCESS; }

  template <class Work>
  void attempt(Work&& work) noexcept {
    if (!sound_) return;
    try {
      work();
    } catch (...) {
      sound_ = false;
    }
  }

  bool agreed() noexcept {
    int mine = sound_;
    int all = 0;
    return calls_.allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD) == MPI_SUCCESS && all;
  }

  Discovery without() noexcept {
    try {
      if (rank_ == 0)
        found_.problem =
            "which ranks share a node is not known: a rank lacked memory or the MPI library returned an error; "
            "collectives are left to the MPI library";
    } catch (...) {
    }
    found_.topology.reset();
    return std::move(found_);
  }

  Discovery one_node() noexcept {
    attempt([&] { found_.topology.emplace(std::vector<int>(static_cast<std::size_t>(ranks_))); });
    return agreed() ? std::move(found_) : without();
  }

  /// Copies rank 0's file, if there is one, to file_ on all ranks. The memory is allocated already, so no rank can fail
  /// to receive it.
  void share_file() noexcept {
    int length = -1;
    if (rank_ == 0 && *request_.file)
      attempt([&] {
        const Result<std::string> text = TopologyFile::read(request_.file);
        if (!text) {
          found_.problem = text.error().text;
          return;
        }
        length = static_cast<int>(text->size());
        text->copy(buffer_, sizeof buffer_);
      });
    note(calls_.bcast(&length, 1, MPI_INT, 0, MPI_COMM_WORLD));
    if (length < 0 || length > static_cast<int>(sizeof buffer_)) return;
    note(calls_.bcast(buffer_, length, MPI_CHAR, 0, MPI_COMM_WORLD));
    attempt([&] {
      // The name is for error messages, which only rank 0 writes.
      const Result<TopologyFile> parsed =
          TopologyFile::parse({buffer_, static_cast<std::size_t>(length)}, request_.file);
      if (parsed)
        file_ = *parsed;
      else if (rank_ == 0)
        found_.problem = parsed.error().text;
    });
  }

  /// The lowest rank that shares memory with this one. It identifies the node.
  int leader_of_my_node() noexcept {
    MPI_Comm node = MPI_COMM_NULL;
    int leader = rank_;
    note(calls_.comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &node));
    if (node == MPI_COMM_NULL) {
      sound_ = false;
      return leader;
    }
    calls_.set_errhandler(node, MPI_ERRORS_RETURN);
    note(calls_.bcast(&leader, 1, MPI_INT, 0, node));
    note(calls_.comm_free(&node));
    return leader;
  }

  /// Makes all allocations, before the ranks agree that they succeeded.
  void prepare() noexcept {
    attempt([&] {
      table_.resize(static_cast<std::size_t>(ranks_));
      if (file_ && file_->names_hosts()) hosts_.resize(static_cast<std::size_t>(ranks_));
      const Sourced<Binding> binding = find_binding(allowed_processors());
      mine_[1] = group_of_address(std::getenv("SLURM_TOPOLOGY_ADDR"), std::getenv("SLURM_TOPOLOGY_ADDR_PATTERN"));
      mine_[2] = binding.known.domain.value_or(RankLocation::unknown);
      mine_[3] = binding.known.core.value_or(RankLocation::unknown);
      if (rank_ == 0 && !binding.by_sys_alone) found_.processors = binding.source;
      gethostname(host_.data(), host_.size() - 1);
    });
  }

  /// Called only if all ranks agreed that none has an error. So all have the same file, and hosts_ is empty on all
  /// ranks or on none.
  void gather() noexcept {
    note(calls_.allgather(mine_.data(), static_cast<int>(mine_.size()), MPI_INT, table_.data(),
                          static_cast<int>(mine_.size()), MPI_INT, MPI_COMM_WORLD));
    if (!hosts_.empty())
      note(calls_.allgather(host_.data(), host_bytes, MPI_CHAR, hosts_.data(), host_bytes, MPI_CHAR, MPI_COMM_WORLD));
  }

  Topology build() {
    std::vector<RankLocation> places;
    for (const Record& record : table_) places.push_back({record[0], record[1], record[2], record[3]});
    if (file_) {
      std::vector<std::string> hosts;
      for (const HostName& host : hosts_) hosts.emplace_back(host.data());
      const Result<std::vector<RankLocation>> changed = file_->apply(places, hosts);
      if (changed)
        places = *changed;
      else if (rank_ == 0)
        found_.problem = changed.error().text;
    }
    return Topology(std::span<const RankLocation>(places));
  }

  static char buffer_[TopologyFile::max_bytes];

  const DiscoverCalls& calls_;
  const DiscoverRequest& request_;
  bool sound_;
  int rank_ = 0;
  int ranks_ = 1;
  Record mine_{RankLocation::unknown, RankLocation::unknown, RankLocation::unknown, RankLocation::unknown};
  HostName host_{};
  std::vector<Record> table_;
  std::vector<HostName> hosts_;
  std::optional<TopologyFile> file_;
  Discovery found_;
};

char Discoverer::buffer_[TopologyFile::max_bytes];

}  // namespace

Discovery discover(const DiscoverCalls& calls, const DiscoverRequest& request) noexcept {
  const ErrorsReturned returned(calls);
  return Discoverer(calls, request).run();
}

}  // namespace bestride::inline model
