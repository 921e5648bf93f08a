// SPDX-License-Identifier: Apache-2.0
// write_records FOLDER SIZE: writes the record files of a job of SIZE ranks, for where_test.py.
//
// Each line of stdin describes one rank: "RANK PID COMMAND; COMMAND; ...". PID 0 is this process. After the files are
// written it prints "ready" and, until stdin is closed, lets the ranks with the command busy or polling do so.
// Commands:
//   collective FUNCTION [ROOT]   call FUNCTION [PEER]   end   wait FUNCTION   request FUNCTION PEER   bytes N
//   site   state N   rank N   busy   polling   exit CODE   signal NUMBER   error TEXT (in the current call)
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <iostream>
#include <sstream>
#include <thread>
#include <vector>

#include "telemetry/record/sample_record.hpp"

namespace {

using namespace bestride;

[[gnu::noinline]] void* here() { return __builtin_return_address(0); }

/// A function with a known line: its call is what `site` records.
[[gnu::noinline]] void* solve() {
  void* const address = here();  // the line that where_test.py looks for
  asm volatile("" : : "r"(address) : "memory");
  return address;
}

int first_load_address(dl_phdr_info* info, std::size_t, void* result) {
  *static_cast<std::uint64_t*>(result) = info->dlpi_addr;
  return 1;  // the program is the first
}

void set_site(RecordFile& file) {
  std::uint64_t load_address = 0;
  dl_iterate_phdr(first_load_address, &load_address);
  char path[256] = "";
  if (readlink("/proc/self/exe", path, sizeof path - 1) < 0) std::abort();
  set_text(file.header.executable, path);
  const std::string whole = path;
  const std::size_t most = sizeof file.modules[0].path - 1;
  set_text(file.modules[0].path, whole.size() > most ? whole.substr(whole.size() - most) : whole);
  file.modules[0].load_address = load_address;
  file.header.modules.set(1);
  file.sites[0].address.set(reinterpret_cast<std::uint64_t>(solve()) - 1 - load_address);
  file.sites[0].frame.set(no_index);
  file.header.sites.set(1);
}

struct Rank {
  RecordFile* file;
  bool busy = false, polling = false;
};

RecordFile* map_file(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
  if (descriptor < 0 || ftruncate(descriptor, record_file_bytes) != 0) std::abort();
  void* const memory = mmap(nullptr, record_file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) std::abort();
  close(descriptor);
  return static_cast<RecordFile*>(memory);
}

void carry_out(Rank& rank, std::istringstream& words) {
  RecordFile& file = *rank.file;
  std::string command, function;
  std::int32_t number = no_rank;
  words >> command;
  const auto current = [&]() -> CallRecord& { return file.call(0, file.threads[0].calls.get() - 1); };
  if (command == "collective" || command == "call" || command == "wait" || command == "request") {
    words >> function;
    if (!(words >> number)) number = no_rank;
  } else {
    words >> number;
  }
  if (command == "collective") {
    begin_collective(file, function).peer.set(number);
  } else if (command == "call") {
    begin_call(file, 0, function).peer.set(number);
  } else if (command == "wait") {
    begin_call(file, 0, function, no_index);
    for (unsigned i = 0; i < max_requests; ++i)
      if (file.request_keys[i].get() != 0)
        file.requests[i].waiter.set(1), current().second_tag.set(static_cast<int>(i + 1));
  } else if (command == "request") {
    unsigned i = 0;
    while (file.request_keys[i].get() != 0) ++i;
    file.request_keys[i].set(i + 1);
    file.requests[i].function.set(function_number(function));
    file.requests[i].active.set(1);
    file.requests[i].peer.set(number);
  } else if (command == "end") {
    end_call(file, 0);
  } else if (command == "exit") {
    file.header.exited.set(1u + static_cast<unsigned>(number));
  } else if (command == "signal" || command == "error") {
    const bool is_signal = command == "signal";
    EndNote& note = file.ends[static_cast<unsigned>(is_signal ? EndKind::signal : EndKind::mpi_error)];
    std::string text;
    words.clear();  // the text is no number
    if (!is_signal) std::getline(words >> std::ws, text);
    set_text(note.text, text + "\n");
    note.at.set(ticks());
    note.code.set(is_signal ? number : 15);
    note.calls.set(1 + file.threads[0].calls.get());
  } else if (command == "bytes") {
    current().bytes.set(static_cast<std::uint64_t>(number));
  } else if (command == "site") {
    set_site(file);
    current().site.set(0);
  } else if (command == "state") {
    file.header.state.set(static_cast<std::uint32_t>(number));
  } else if (command == "rank") {
    file.header.world_rank.set(number);
  } else if (command == "busy") {
    rank.busy = true;
  } else if (command == "polling") {
    rank.polling = true;
    file.threads[0].poll_function.set(function_number("MPI_Test"));
  } else if (!command.empty()) {
    std::cerr << "write_records: there is no command '" << command << "'\n";
    std::exit(1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string folder = argv[1];
  const int size = std::atoi(argv[2]);
  mkdir(folder.c_str(), 0700);
  std::vector<Rank> ranks;
  for (std::string line; std::getline(std::cin, line) && line != "go";) {
    std::istringstream words(line);
    int number = 0, pid = 0;
    words >> number >> pid;
    if (pid == 0) pid = getpid();
    Rank rank{map_file(folder + "/" + std::to_string(pid) + "." + std::to_string(number) + ".record")};
    begin_record(*rank.file, pid, process_status(pid).start_time, number, size);
    std::string rest;
    std::getline(words, rest);
    std::istringstream commands(rest);
    for (std::string command; std::getline(commands, command, ';');) {
      std::istringstream command_words(command);
      carry_out(rank, command_words);
    }
    ranks.push_back(rank);
  }
  std::cout << "ready" << std::endl;
  std::thread([] {
    char c;
    while (read(STDIN_FILENO, &c, 1) > 0) {
    }
    _exit(0);
  }).detach();
  while (true) {
    for (Rank& rank : ranks) {
      if (rank.busy) begin_collective(*rank.file, "MPI_Allreduce"), end_call(*rank.file, 0);
      if (rank.polling) rank.file->threads[0].polls.add(1);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}
