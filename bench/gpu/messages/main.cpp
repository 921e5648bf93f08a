// SPDX-License-Identifier: Apache-2.0
// gpu_messages [--by-hand] [--seconds S] [--json FILE]: messages of rows in device memory between two ranks. A derived
// datatype with device pointers (which needs the preload library or a GPU-aware MPI library) is compared with
// hand-written code: a pack kernel for this shape, a copy to page-locked memory, and a send. One-way times; the two
// take turns. --by-hand skips the datatype. Plain MPI and the CUDA driver API.
#include <dlfcn.h>
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "apps/common/command_line.hpp"
#include "apps/common/text.hpp"
#include "base/median.hpp"
#include "bench/gpu/by_hand.hpp"
#include "bench/gpu/gpu.hpp"

namespace {

using by_hand::Vector;
using gpu::Address;
using gpu::Gpu;

struct Options {
  bool typed = true;
  double seconds = 0.3;
  std::string json;
};

/// Whether the preload library is loaded or the MPI library reports that it takes device pointers.
bool takes_device_pointers() {
  if (dlsym(RTLD_DEFAULT, "bestride_slot_target")) return true;
  const auto aware = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "MPIX_Query_cuda_support"));
  return aware && aware() == 1;
}

/// One rank's side: rows in device memory, and both ways to send and receive them.
class Side {
 public:
  Side(Gpu& gpu, int rank, std::int64_t largest)
      : gpu_(gpu),
        peer_(1 - rank),
        rank_(rank),
        pack_(gpu.function(by_hand::image(), "by_hand_vector_pack")),
        unpack_(gpu.function(by_hand::image(), "by_hand_vector_unpack")) {
    span_ = static_cast<std::size_t>(largest) / Vector::packed_bytes * Vector::pitch;
    user_ = gpu.allocate(span_);
    packed_ = gpu.allocate(static_cast<std::size_t>(largest));
    staging_ = gpu.allocate_pinned(static_cast<std::size_t>(largest));
  }

  ~Side() {
    if (type_ != MPI_DATATYPE_NULL) MPI_Type_free(&type_);
  }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  void typed(std::int64_t bytes, bool sending) const {
    const MPI_Datatype type = type_of(bytes);
    if (sending)
      MPI_Send(reinterpret_cast<void*>(user_), 1, type, peer_, 0, MPI_COMM_WORLD);
    else
      MPI_Recv(reinterpret_cast<void*>(user_), 1, type, peer_, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }

  void by_hand(std::int64_t bytes, bool sending) const {
    by_hand::Move work{user_, packed_, static_cast<std::uint64_t>(bytes) / sizeof(Vector::Word)};
    const unsigned grid = static_cast<unsigned>((work.words + 255) / 256);
    if (sending) {
      gpu_.launch(pack_, grid, &work);
      gpu_.copy(reinterpret_cast<Address>(staging_), packed_, static_cast<std::size_t>(bytes));
      gpu_.synchronize();
      MPI_Send(staging_, static_cast<int>(bytes), MPI_BYTE, peer_, 0, MPI_COMM_WORLD);
    } else {
      MPI_Recv(staging_, static_cast<int>(bytes), MPI_BYTE, peer_, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      gpu_.copy(packed_, reinterpret_cast<Address>(staging_), static_cast<std::size_t>(bytes));
      gpu_.launch(unpack_, grid, &work);
      gpu_.synchronize();
    }
  }

  /// Sends once from rank 0 and checks every byte on rank 1, rows and gaps. The result is the same on both ranks.
  template <class Send>
  bool right(std::int64_t bytes, const Send& send) const {
    const std::size_t span = static_cast<std::size_t>(bytes) / Vector::packed_bytes * Vector::pitch;
    std::vector<unsigned char> memory(span);
    for (std::size_t i = 0; i < span; ++i) memory[i] = rank_ == 0 ? content(i) : gap;
    gpu_.write(user_, memory.data(), span);
    send(bytes, rank_ == 0);
    gpu_.read(memory.data(), user_, span);
    int good = 1;
    for (std::size_t i = 0; i < span; ++i)
      if (memory[i] != (rank_ == 0 || i % Vector::pitch < Vector::block ? content(i) : gap)) good = 0;
    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return good == 1;
  }

  /// One-way seconds, from a number of round trips. The result is the same on both ranks.
  template <class Send>
  double one_way(std::int64_t bytes, int trips, const Send& send) const {
    MPI_Barrier(MPI_COMM_WORLD);
    double seconds = Gpu::host_seconds([&] {
      for (int trip = 0; trip < trips; ++trip)
        for (const int turn : {0, 1}) send(bytes, turn == rank_);
    });
    MPI_Bcast(&seconds, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return seconds / (2 * trips);
  }

 private:
  static constexpr unsigned char gap = 0xA5;
  static unsigned char content(std::size_t at) { return static_cast<unsigned char>(at * 0x9E3779B97F4A7C15ull >> 56); }

  /// The type is kept, because an application creates its types once.
  MPI_Datatype type_of(std::int64_t bytes) const {
    if (made_for_ == bytes) return type_;
    if (type_ != MPI_DATATYPE_NULL) MPI_Type_free(&type_);
    MPI_Type_vector(static_cast<int>(bytes / std::int64_t{Vector::block}), Vector::block / 8, Vector::pitch / 8,
                    MPI_DOUBLE, &type_);
    MPI_Type_commit(&type_);
    made_for_ = bytes;
    return type_;
  }

  Gpu& gpu_;
  int peer_, rank_;
  gpu::FunctionHandle pack_, unpack_;
  std::size_t span_ = 0;
  Address user_ = 0, packed_ = 0;
  void* staging_ = nullptr;
  mutable std::int64_t made_for_ = 0;
  mutable MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

int run(const Options& options, int rank) {
  Gpu gpu(0);  // both ranks use one device, because only the transfer paths are compared
  const std::vector<std::int64_t> sizes =
      gpu.stand_in() ? std::vector<std::int64_t>{1 << 10, 1 << 16}
                     : std::vector<std::int64_t>{1 << 10, 1 << 13, 1 << 16, 1 << 20, 1 << 22, 1 << 24, 1 << 26};
  const Side side(gpu, rank, sizes.back());
  const auto typed = [&](std::int64_t bytes, bool sending) { side.typed(bytes, sending); };
  const auto by_hand = [&](std::int64_t bytes, bool sending) { side.by_hand(bytes, sending); };
  std::string json =
      "{\"gpu\": \"" + gpu.name() + "\", \"stand_in\": " + (gpu.stand_in() ? "true" : "false") + ", \"rows\": [\n";
  bool all_right = true;
  if (rank == 0 && gpu.stand_in())
    std::printf("This is the stand-in driver: its figures are no performance and are not shown.\n");
  if (rank == 0)
    std::printf("rows of 64 of 512 B in device memory, two ranks, one way; typed over by hand, at most 1.05\n");
  for (const std::int64_t bytes : sizes) {
    const bool right = side.right(bytes, by_hand) && (!options.typed || side.right(bytes, typed));
    all_right = all_right && right;
    const double once = std::max(side.one_way(bytes, 2, by_hand), 1e-7);
    const int trips = gpu.stand_in() ? 1 : static_cast<int>(std::clamp(2e-3 / once, 1.0, 50.0));
    const int rounds =
        gpu.stand_in() ? 3 : static_cast<int>(std::clamp(options.seconds / (4 * once * trips), 5.0, 41.0));
    std::vector<double> ours, theirs;
    for (int round = 0; round < rounds; ++round)
      for (const int turn : {0, 1}) {
        if ((turn + round) % 2 == 0)
          theirs.push_back(side.one_way(bytes, trips, by_hand));
        else if (options.typed)
          ours.push_back(side.one_way(bytes, trips, typed));
      }
    if (rank != 0) continue;
    const double by_hand_us = bestride::median_of(theirs) * 1e6,
                 typed_us = ours.empty() ? 0 : bestride::median_of(ours) * 1e6;
    char line[256];
    if (gpu.stand_in() || !options.typed)
      std::snprintf(line, sizeof line, "%10lld B  %s", static_cast<long long>(bytes), right ? "right" : "WRONG BYTES");
    else
      std::snprintf(line, sizeof line, "%10lld B  typed %10.1f us  by hand %10.1f us  ratio %.3f  %s",
                    static_cast<long long>(bytes), typed_us, by_hand_us, typed_us / by_hand_us,
                    right ? "right" : "WRONG BYTES");
    std::printf("%s\n", line);
    char figures[160] = "\"figure\": null";
    if (!gpu.stand_in() && options.typed)
      std::snprintf(figures, sizeof figures, "\"figure\": %.5g, \"at_most\": 1.05, \"us\": %.6g, \"by_hand_us\": %.6g",
                    typed_us / by_hand_us, typed_us, by_hand_us);
    json += std::string("  {\"goal\": \"typed message over by hand\", \"case\": \"") + std::to_string(bytes) +
            " B\", " + figures + ", \"checked\": true, \"right\": " + (right ? "true" : "false") +
            (bytes == sizes.back() ? "}\n" : "},\n");
  }
  if (rank == 0 && !options.json.empty() && !apps::write_text(options.json, json + "]}\n"))
    throw gpu::Failed("cannot write " + options.json);
  return all_right ? 0 : 1;
}

int guarded(const std::vector<std::string>& arguments, int rank, int ranks) {
  Options options;
  std::string error = command_line::parse(arguments,
                                          {{"--seconds", command_line::number(options.seconds, 0, 3600)},
                                           {"--json", command_line::file_name(options.json)}},
                                          {{"--by-hand", [&] { options.typed = false; }}});
  if (error.empty() && ranks != 2) error = "runs on 2 ranks";
  if (error.empty() && options.typed && !takes_device_pointers())
    error =
        "this MPI is neither GPU-aware nor with the preload: it can't take device pointers (--by-hand leaves that out)";
  if (!error.empty()) {
    if (rank == 0)
      std::fprintf(stderr, "gpu_messages: %s\ngpu_messages [--by-hand] [--seconds S] [--json FILE]\n", error.c_str());
    return 2;
  }
  try {
    return run(options, rank);
  } catch (const gpu::Failed& failed) {
    std::fprintf(stderr, "gpu_messages: %s\n", failed.what());
    MPI_Abort(MPI_COMM_WORLD, 2);  // the other rank waits
  }
  return 2;
}

}  // namespace

int main(int count, char** arguments) {
  MPI_Init(&count, &arguments);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int code = guarded({arguments + 1, arguments + count}, rank, ranks);
  MPI_Finalize();
  return code;
}
