// SPDX-License-Identifier: Apache-2.0
// The table of every BESTRIDE_* variable. Add a line here and nowhere else.
#include "base/variables.hpp"

namespace bestride {
namespace {

using enum VariableType;
constexpr Variable table[] = {
    {"BESTRIDE_DISABLE", flag, "0", "", "1: engage nothing; every call goes straight to the MPI library"},
    {"BESTRIDE_LOG", choice, "warn", "quiet|warn|info", "what is written to stderr"},
    {"BESTRIDE_REPORT", flag, "0", "", "1: at MPI_Finalize rank 0 prints what was done and saved, and writes it as JSON"},
    {"BESTRIDE_REPORT_FILE", text, "", "", "path of the JSON report; default bestride-<job>.json in the working directory"},
    {"BESTRIDE_PROFILE", text, "", "", "machine profile to use; default ~/.config/bestride/profile.json, then /etc/bestride/profile.json"},
    {"BESTRIDE_CONFIG", text, "", "", "file of NAME=value lines read before the user's and the system's"},
    {"BESTRIDE_STRATEGY", choice, "auto", "auto|forward|respell|pack|oneshot|staged|pipelined|copy-engine|device",
     "force one strategy wherever it is possible: the first three for host memory, the others for device memory (for tests and measurements)"},
    {"BESTRIDE_KERNEL", choice, "automatic",
     "automatic|reference|block_copy|word|overlap|wide|gather|record|list|transpose|streaming",
     "force one kernel family wherever it can do the shape (for tests and measurements)"},
    {"BESTRIDE_KERNEL_ISA", choice, "auto", "auto|scalar|avx2|avx512", "widest instruction set the kernels may use"},
    {"BESTRIDE_STREAMING_FROM", text, "auto", "", "packed size from which stores bypass the cache; auto, or a size, 0 for never"},
    {"BESTRIDE_PACK_LIMIT", size, "64M", "", "largest contiguous copy made of one message; larger ones are left to MPI or respelled"},
    {"BESTRIDE_POOL_LIMIT", size, "128M", "", "idle packing buffers kept for reuse, per process"},
    {"BESTRIDE_PARANOID", flag, "0", "", "1: every pack and unpack is compared with the MPI library's own; a difference is said and corrected"},
    {"BESTRIDE_CONTIGUOUS", choice, "forward", "forward|respell",
     "respell: contiguous messages, too, take the way the profile has faster; gains only where the ranks share a cache"},
    {"BESTRIDE_EVERYWHERE", flag, "0", "",
     "1, on all ranks alike: every rank has the preload, so long messages of structs may be packed by their sender too, and ranks may agree in MPI_Init"},
    {"BESTRIDE_TOPOLOGY", text, "", "", "file that says which ranks share a node and which nodes are near each other; needs BESTRIDE_EVERYWHERE=1"},
    {"BESTRIDE_PROGRESS", choice, "calls", "calls|thread",
     "thread: a thread carries nonblocking collectives on while the program computes (takes MPI_THREAD_MULTIPLE); calls: every MPI call does"},
    {"BESTRIDE_CACHE_BYTES", size, "1G", "",
     "memory of a node for results of past allgathers, so that repeated ones cross no wire; at most a sixteenth of the node's; 0: none are kept"},
    {"BESTRIDE_WINDOW_LIMIT", size, "64M", "", "memory that the ranks of a node share for the collectives of one communicator, at most"},
    {"BESTRIDE_REASSOCIATE", flag, "0", "",
     "1: sums and products of floating-point numbers may go through the hierarchy, in one fixed order that is not the MPI library's"},
    {"BESTRIDE_QUANTIZE", choice, "off", "off|int8|int4",
     "large allgathers and sums of floating-point numbers between nodes are approximate: codes of 8 bits; int4: of 4 where numbers are added (docs/quantised.md)"},
    {"BESTRIDE_RAILS", text, "profile", "",
     "NICs of which each local rank takes one, such as eth0,eth1; profile: those that calibration found to be faster; auto: the fastest equal ones; off"},
    {"BESTRIDE_COLLECTIVES", choice, "auto", "auto|library|hierarchical",
     "collectives over several nodes: auto: as predicted; library: all left to MPI; hierarchical: wherever possible (for tests and measurements)"},
    {"BESTRIDE_GPU", choice, "auto", "auto|off", "off: device memory is left to MPI; auto: used as soon as the application uses CUDA"},
    {"BESTRIDE_GPU_AWARE", choice, "auto", "auto|yes|no", "whether the MPI library takes device memory; auto: what it says of itself"},
    {"BESTRIDE_CUDA_DRIVER", text, "", "", "CUDA driver library to load; default the libcuda.so.1 the application loads"},
    {"BESTRIDE_GPU_KERNEL", choice, "automatic", "automatic|words|transpose|bulk|bytes|ordered",
     "force one GPU kernel wherever it can do the shape (for tests and measurements)"},
    {"BESTRIDE_GPU_GRAPHS", choice, "auto", "auto|always|never",
     "work on the GPU that is repeated, as CUDA graphs: auto: where that was measured to be faster; always, never: for tests and measurements"},
    {"BESTRIDE_GPU_CODES", choice, "auto", "auto|always|never",
     "codes of numbers in device memory are made and read there: auto: where that is predicted to be faster; always, never: for tests and measurements"},
    {"BESTRIDE_GPU_ORDER", choice, "none", "none|default_stream",
     "default_stream: packing waits on the device for the CUDA default stream; for programs that do not synchronise before MPI calls"},
    {"BESTRIDE_GPU_LIMIT", size, "2G", "", "page-locked host memory, and device memory, that messages in flight may take, per CUDA context"},
    {"BESTRIDE_TEST_STAND_IN", flag, "0", "", "1, for tests: GPU curves measured on a stand-in driver may be used"},
    {"BESTRIDE_TEST_FAIL", text, "", "", "for tests: internal failures to force, by name and comma, or all"},
};

}  // namespace

std::span<const Variable> variables() noexcept { return table; }

}  // namespace bestride
