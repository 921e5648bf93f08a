// SPDX-License-Identifier: Apache-2.0
// The table of all BESTRIDE_* variables. A new variable needs a line here; then docs/variables.md is generated again
// (its second line says how).
#include "base/variables.hpp"

namespace bestride {
namespace {

using enum VariableType;
constexpr Variable table[] = {
    {"BESTRIDE_DISABLE", flag, "0", "", "1: intercept nothing; every call goes directly to the MPI library", true},
    {"BESTRIDE_LOG", choice, "warn", "quiet|warn|info", "what the library writes to stderr", true},
    {"BESTRIDE_REPORT", flag, "0", "",
     "1: at MPI_Finalize rank 0 prints what was done and what it saved, and writes both as JSON"},
    {"BESTRIDE_REPORT_FILE", text, "", "",
     "path of the JSON report; default bestride-<job>.json in the working directory"},
    {"BESTRIDE_RECORD", choice, "on", "on|off|keep",
     "on: each rank records its MPI calls in /dev/shm, for 'bestride where'; keep: the record stays after "
     "MPI_Finalize; off: nothing is recorded"},
    {"BESTRIDE_ON_FAULT", text, "report", "",
     "what 'bestride run --watch' does after a verdict; report: print and write it; abort: end a job that can't go on; "
     "else a shell command that gets the verdict as JSON on its stdin"},
    {"BESTRIDE_WATCH", text, "", "",
     "1: on each host an agent watches the ranks there, and writes a file if one crashes or hangs; 'bestride run "
     "--watch' sets it to its own addresses"},
    {"BESTRIDE_WATCH_KEY", text, "", "", "set by 'bestride run --watch': the keys of its connections to the agents",
     true, true},
    {"BESTRIDE_WATCHER", text, "", "", "set by 'bestride run --watch' for the ranks: the process that watches the job",
     true, true},
    {"BESTRIDE_MARK", text, "", "",
     "set by 'bestride try': a file to which rank 0 adds a byte when its first MPI call reaches the library", true,
     true},
    {"BESTRIDE_COMMAND", text, "", "",
     "path of the bestride command on each host, which is started as an agent; default: beside the library"},
    {"BESTRIDE_PROFILE", text, "", "",
     "machine profile to use; default ~/.config/bestride/profile.json, then /etc/bestride/profile.json"},
    {"BESTRIDE_CONFIG", text, "", "", "file of NAME=value lines that is read before the user's and the system's", true},
    {"BESTRIDE_STRATEGY", choice, "auto", "auto|forward|respell|pack|oneshot|staged|pipelined|copy-engine|device",
     "force one strategy wherever it is possible: forward, respell or pack for host memory, the others for device "
     "memory; any of them turns the engine off (for tests and measurements)"},
    {"BESTRIDE_PACK_LIMIT", size, "64M", "",
     "largest contiguous copy of one message; larger messages are left to MPI or respelled"},
    {"BESTRIDE_PARANOID", flag, "0", "",
     "1: every pack and unpack is compared with the MPI library's own; a difference is reported and corrected"},
    {"BESTRIDE_ALL_RANKS", choice, "auto", "0|1|auto",
     "auto: Bestride's own collectives, on one node and over several, if the launcher can tell that every rank has "
     "the preload library; 1: every rank has it, which is checked if the launcher can tell; 0: never"},
    {"BESTRIDE_TOPOLOGY", text, "", "",
     "file that lists which ranks share a node and which nodes are near each other; needs BESTRIDE_ALL_RANKS=1 or "
     "auto"},
    {"BESTRIDE_PROGRESS", choice, "auto", "auto|thread|calls",
     "what advances nonblocking collectives: auto: MPI calls, and a thread while the program waits elsewhere (between "
     "nodes it needs MPI_THREAD_MULTIPLE); thread: a thread all the time, also while the program computes; calls: MPI "
     "calls alone, so nonblocking collectives are left to the MPI library"},
    {"BESTRIDE_YIELD", choice, "auto", "auto|on|off",
     "whether a rank that waits in an MPI call yields its processor, under MPICH over UCX; auto: if the host has more "
     "ranks than processors that they may use; on: always (for example, if two jobs share the host)"},
    {"BESTRIDE_CACHE_BYTES", size, "1G", "",
     "memory per node for results of past allgathers, so that repeated ones send nothing over the network; at most a "
     "sixteenth of the node's memory; 0: no results are kept"},
    {"BESTRIDE_WINDOW_LIMIT", size, "64M", "",
     "largest memory that the ranks of a node share for the collectives of one communicator"},
    {"BESTRIDE_REASSOCIATE", flag, "0", "",
     "1: sums and products of floating-point numbers may be hierarchical; their order is fixed, but is not the MPI "
     "library's"},
    {"BESTRIDE_QUANTIZE", choice, "off", "off|int8|int4",
     "large allgathers and sums of floating-point numbers between nodes are approximate; int8: codes of 8 bits; int4: "
     "codes of 4 bits for sums, of 8 bits otherwise (docs/quantized.md)"},
    {"BESTRIDE_NICS", text, "profile", "",
     "NICs of which each local rank uses one, such as eth0,eth1; profile: those that calibration measured to be "
     "faster; auto: the fastest equal ones; off"},
    {"BESTRIDE_COLLECTIVES", choice, "auto", "auto|library|hierarchical",
     "collectives between nodes and within one: auto: as predicted; library: all left to MPI; hierarchical: Bestride's "
     "own wherever possible (for tests and measurements)"},
    {"BESTRIDE_GPU", choice, "auto", "auto|off",
     "off: device memory is left to MPI; auto: handled as soon as the application uses CUDA"},
    {"BESTRIDE_GPU_AWARE", choice, "auto", "auto|yes|no",
     "whether the MPI library accepts device memory; auto: what it reports of itself"},
    {"BESTRIDE_CUDA_DRIVER", text, "", "",
     "CUDA driver library to load; default the libcuda.so.1 that the application loads"},
    {"BESTRIDE_GPU_ORDER", choice, "none", "none|default_stream",
     "default_stream: packing waits on the device for the CUDA default stream; for programs that do not synchronize "
     "before MPI calls"},
    {"BESTRIDE_GPU_LIMIT", size, "2G", "",
     "page-locked host memory, and device memory, that messages in flight may use, per CUDA context"},
    {"BESTRIDE_FORCE", text, "", "",
     "for tests and measurements: choices that are else made by what was measured, as name=value,name=value"},
    {"BESTRIDE_FORCE=kernel", choice, "automatic",
     "automatic|reference|block_copy|word|overlap|wide|gather|record|list|transpose|streaming",
     "one kernel family wherever it supports the shape"},
    {"BESTRIDE_FORCE=isa", choice, "auto", "auto|scalar|avx2|avx512",
     "widest instruction set that the kernels may use"},
    {"BESTRIDE_FORCE=streaming_from", automatic_size, "auto", "",
     "size from which bytes are packed, or written to memory that ranks share, past the caches; 0: never"},
    {"BESTRIDE_FORCE=contiguous", choice, "auto", "auto|forward|near",
     "contiguous messages between near ranks, where calibration measured that an equivalent datatype is faster: near: "
     "use it, in a virtual machine, too; forward: never"},
    {"BESTRIDE_FORCE=sum_order", choice, "auto", "auto|first|library",
     "when the MPI library's order of sums of floating-point numbers is found out: auto: after 16 equal calls; first: "
     "in "
     "the first; library: never, and all are left to it"},
    {"BESTRIDE_FORCE=gpu_kernel", choice, "automatic", "automatic|words|transpose|bulk|bytes|ordered",
     "one GPU kernel wherever it supports the shape"},
    {"BESTRIDE_FORCE=gpu_graphs", choice, "auto", "auto|always|never",
     "repeated work on the GPU as CUDA graphs: auto: if that was measured to be faster"},
    {"BESTRIDE_FORCE=stand_in", flag, "0", "", "1: GPU curves measured on a stand-in driver may be used"},
    {"BESTRIDE_FORCE=fail", text, "", "", "internal failures, names separated by +, or all"},
};

}  // namespace

std::span<const Variable> variables() noexcept { return table; }

}  // namespace bestride
