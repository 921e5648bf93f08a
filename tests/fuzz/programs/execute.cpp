// SPDX-License-Identifier: Apache-2.0
// Executes the steps of one program in order, then completes and frees everything.
#include <pthread.h>
#include <algorithm>
#include <thread>

#include "tests/fuzz/programs/common.h"
#include "tests/fuzz/programs/context.hpp"

namespace bestride::fuzz {

std::uint64_t seed_of(const Step& step, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  return fuzz_mix(fuzz_mix(fuzz_mix(step.seed + a * 0x1000001) + b * 0x10001) + c);
}

OperationPtr Context::add(const std::string& label) {
  auto operation = std::make_shared<Operation>();
  operation->number = ++operations;
  operation->request.id = operation->status.id = operations;
  operation->label = label;
  return operation;
}

void Context::finish_step(const Step& step, std::vector<OperationPtr> set, bool may_pend) {
  if (may_pend && step.pend && own.chance(75))
    pending.insert(pending.end(), set.begin(), set.end());
  else
    complete(*this, std::move(set));
}

void execute(Context& context, const Step& step) {
  using Function = void (*)(Context&, const Step&);
  static constexpr Function functions[] = {
      make_comm,       use_comm,    free_comm,  make_type, use_type,        free_type,
      messages,        exchange,    collective, neighbor,  make_persistent, start_persistent,
      free_persistent, partitioned, window,     file,      complete_some,   cancel,
      errors,          throwing,    pack,       recommit,  big_receive,     mismatched,
  };
  static_assert(std::size(functions) == kinds);
  context.own = Random(seed_of(step, 1000, static_cast<std::uint64_t>(context.rank)));
  context.some_pmpi = step.pmpi != 0;
  context.draws = seed_of(step, 1001, static_cast<std::uint64_t>(context.rank));
  context.line("/* step " + std::to_string(step.number) + ": " + name_of(step.kind) + " */");
  fuzz_log[0] = 0;
  functions[static_cast<int>(step.kind)](context, step);
  if (fuzz_log[0]) {
    context.say(fuzz_log);
    context.line("callbacks(\"" + std::string(fuzz_log) + "\");");
    fuzz_log[0] = 0;
  }
}

namespace {

void finish(Context& context) {
  context.some_pmpi = false;
  complete(context, std::move(context.pending));
  context.pending.clear();
  for (PersistentSet& set : context.persistent)
    for (auto& member : set.members) CALL(context, Request_free, member.operation->request);
  context.persistent.clear();
  for (LiveType& type : context.types) drop(context, type.handle);
  context.types.clear();
}

void free_comms(Context& context) {
  for (CommSlot& slot : context.comms)
    if (!slot.world && !slot.closed && slot.h != MPI_COMM_NULL) CALL(context, Comm_free, Gone{&slot.h});
  context.comms.clear();
  context.kept.clear();
}

/// A communicator of all ranks for one thread, with a ring topology.
CommSlot ring_of_world(Context& context, const CommSlot& world) {
  CommSlot slot;
  slot.groups = world.groups;
  slot.mine = 0;
  slot.rank = world.rank;
  Group& group = slot.groups[0];
  group.topology = Topology::cart;
  group.dims = {group.size()};
  group.periods = {0};
  for (int r = 0; r < group.size(); ++r)
    group.sources.push_back({r == 0 ? MPI_PROC_NULL : r - 1, r + 1 == group.size() ? MPI_PROC_NULL : r + 1});
  group.targets = group.sources;
  CALL(context, Cart_create, world.h, 1, group.dims, group.periods, 0, (New{&slot.h, "comm"}));
  return slot;
}

/// Executes the steps of threads 1 and 2 concurrently, each on its own communicator.
void region(Context& context, const std::vector<Step>& steps) {
  std::vector<Recorder> recorders;
  std::vector<Context> sides(2);
  recorders.reserve(2);
  for (int t = 0; t < 2; ++t) {
    Context& side = sides[static_cast<std::size_t>(t)];
    side.rank = context.rank, side.ranks = context.ranks, side.program = context.program;
    side.comms.push_back(ring_of_world(context, context.comms[0]));
    side.operations = 10000 * (t + 1) + context.operations * 30 % 5000;
    side.depth = 1;
    side.alive = context.alive;
    // Both threads may use these types but not free them: one may commit a type while the other communicates with it.
    for (const LiveType& type : context.types) {
      side.types.push_back(type);
      side.types.back().handle.owned = false;
    }
  }
  static int regions = 0;
  if (context.recorder)
    for (int t = 0; t < 2; ++t)
      recorders.push_back(context.recorder->fork("t" + std::to_string(t) + "_" + std::to_string(regions++) + "_"));
  std::thread threads[2];
  for (int t = 0; t < 2; ++t) {
    Context& side = sides[static_cast<std::size_t>(t)];
    if (context.recorder) side.recorder = &recorders[static_cast<std::size_t>(t)];
    threads[t] = std::thread([&side, &steps, t] {
      for (const Step& step : steps)
        if (step.thread == t + 1) {
          side.alive();
          side.say("[" + std::to_string(step.number) + " " + name_of(step.kind));
          execute(side, step);
          side.say("]");
        }
      side.alive();
      finish(side);
    });
  }
  for (auto& thread : threads) thread.join();
  if (context.recorder) {
    std::string names[2];
    for (int t = 0; t < 2; ++t) {
      Recorder& r = recorders[static_cast<std::size_t>(t)];
      names[t] = context.recorder->fresh("side", "int");
      context.recorder->declarations +=
          r.declarations + "static void *run_" + names[t] + "(void *unused) {\n" + r.body + "  return 0;\n}\n";
    }
    context.line("two_threads(run_" + names[0] + ", run_" + names[1] + ");");
  }
  for (Context& side : sides) {
    context.say("thread:" + side.items);
    side.recorder = nullptr;
    std::swap(side.items, context.items);
    context.items.clear();
    std::swap(side.items, context.items);
    CALL(context, Comm_free, Gone{&side.comms[0].h});
    for (std::size_t i = 1; i < side.comms.size(); ++i)
      if (!side.comms[i].closed && side.comms[i].h != MPI_COMM_NULL) CALL(context, Comm_free, Gone{&side.comms[i].h});
  }
}

}  // namespace

void run_program(Context& context, const Program& program, const std::function<void(const std::string&)>& trace) {
  context.program = &program;
  CommSlot world;
  world.h = MPI_COMM_WORLD;
  world.world = true;
  world.mine = 0;
  world.rank = context.rank;
  world.groups.resize(1);
  for (int r = 0; r < context.ranks; ++r) world.groups[0].world.push_back(r);
  context.comms.push_back(std::move(world));
  static char attached[1 << 20];
  if (program.buffer) {
    if (context.recorder) context.recorder->region(attached, sizeof attached, "attached");
    CALL(context, Buffer_attach, static_cast<void*>(attached), static_cast<int>(sizeof attached));
  }
  for (std::size_t i = 0; i < program.steps.size();) {
    const Step& step = program.steps[i];
    trace(std::to_string(step.number) + " " + name_of(step.kind) + (step.thread ? " threads" : ""));
    if (step.thread == 0 || !program.threads) {
      execute(context, step);
      ++i;
      continue;
    }
    std::vector<Step> together;
    for (; i < program.steps.size() && program.steps[i].thread != 0; ++i) together.push_back(program.steps[i]);
    region(context, together);
  }
  trace("end");
  finish(context);
  CALL(context, Barrier, MPI_COMM_WORLD);
  free_comms(context);
  if (program.buffer) {
    void* buffer = nullptr;
    int size = 0;
    CALL(context, Buffer_detach, (Out<void*>{&buffer}), (Out<int>{&size}));
  }
}

}  // namespace bestride::fuzz
