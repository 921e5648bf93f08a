// SPDX-License-Identifier: Apache-2.0
// Completion by every call, in an order that each rank chooses at random.
#include <algorithm>

#include "tests/fuzz/programs/common.h"
#include "tests/fuzz/programs/context.hpp"

namespace bestride::fuzz {
namespace {

using Set = std::vector<OperationPtr>;

/// The requests of a set as an array, in the executor and in the C text.
struct Array {
  Context& context;
  Set& set;
  std::vector<MPI_Request> requests;
  std::vector<MPI_Status> statuses;
  std::vector<int> indices;

  Array(Context& c, Set& s) : context(c), set(s), requests(s.size()), statuses(s.size()), indices(s.size()) {
    for (std::size_t i = 0; i < s.size(); ++i) {
      requests[i] = s[i]->request.h;
      statuses[i] = s[i]->status.s;
    }
  }
  int n() const { return static_cast<int>(set.size()); }
  void store() {
    for (std::size_t i = 0; i < set.size(); ++i) set[i]->request.h = requests[i];
  }
  std::string ids() const {
    std::string text = "(int[]){";
    for (const auto& operation : set) text += std::to_string(operation->request.id) + ",";
    return text + "-1}";
  }
  void line(const char* what, bool pmpi) {
    context.line(std::string(what) + "(" + std::to_string(n()) + ", " + ids() + ");");
  }
  void check(const char* name, int code) {
    if (const int error = fuzz_class(code)) context.say("!" + std::string(name) + "=" + std::to_string(error));
  }
};

/// Whether this rank ignores the status of an operation, which only receives have to report.
bool ignores_status(Context& context, const Operation& operation) {
  return (operation.collective || operation.send) && !operation.cancelled && context.own.chance(40);
}

void wait_one(Context& context, Operation& operation) {
  if (ignores_status(context, operation))
    CALL(context, Wait, operation.request, MPI_STATUS_IGNORE);
  else
    CALL(context, Wait, operation.request, operation.status);
}

void test_one(Context& context, Operation& operation, bool ask_first) {
  if (context.recorder)
    context.line(std::string(ask_first ? "ask_one" : "test_one") + "(" + std::to_string(operation.request.id) + ");");
  int flag = 0, code = MPI_SUCCESS;
  MPI_Status status;
  MPI_Status* const result = ignores_status(context, operation) ? MPI_STATUS_IGNORE : &operation.status.s;
  // MPI_Request_get_status does not change the request, so MPI_Wait still completes it.
  if (ask_first) {
    while (!flag && code == MPI_SUCCESS) code = MPI_Request_get_status(operation.request.h, &flag, &status);
    if (code == MPI_SUCCESS) code = MPI_Wait(&operation.request.h, result);
  } else {
    while (!flag && code == MPI_SUCCESS) code = MPI_Test(&operation.request.h, &flag, result);
  }
  if (const int error = fuzz_class(code)) context.say("!Test=" + std::to_string(error));
}

void all_at_once(Context& context, Set& set, bool test) {
  Array array(context, set);
  array.line(test ? "test_all" : "wait_all", false);
  int flag = 0, code = MPI_SUCCESS;
  const bool ignore =
      std::all_of(set.begin(), set.end(), [&](const auto& one) { return ignores_status(context, *one); });
  MPI_Status* const results = ignore ? MPI_STATUSES_IGNORE : array.statuses.data();
  if (test)
    while (!flag && code == MPI_SUCCESS) code = MPI_Testall(array.n(), array.requests.data(), &flag, results);
  else
    code = MPI_Waitall(array.n(), array.requests.data(), results);
  array.check(test ? "Testall" : "Waitall", code);
  for (std::size_t i = 0; i < set.size(); ++i) set[i]->status.s = array.statuses[i];
  array.store();
}

void any_of(Context& context, Set& set, bool test) {
  Array array(context, set);
  array.line(test ? "test_any" : "wait_any", false);
  for (int left = array.n(); left > 0;) {
    int index = MPI_UNDEFINED, flag = 1;
    MPI_Status status = array.statuses[0];
    const int code = test ? MPI_Testany(array.n(), array.requests.data(), &index, &flag, &status)
                          : MPI_Waitany(array.n(), array.requests.data(), &index, &status);
    array.check(test ? "Testany" : "Waitany", code);
    if (code != MPI_SUCCESS && index == MPI_UNDEFINED) break;
    if (!flag) continue;
    if (index == MPI_UNDEFINED) {
      context.say("WRONG:any");
      break;
    }
    set[static_cast<std::size_t>(index)]->status.s = status;
    --left;
  }
  // No active request is left, so the result is fixed.
  int index = 7, flag = 7;
  MPI_Status status;
  if (context.own.chance(50))
    MPI_Testany(array.n(), array.requests.data(), &index, &flag, &status);
  else
    MPI_Waitany(array.n(), array.requests.data(), &index, &status);
  if (index != MPI_UNDEFINED) context.say("WRONG:any at the end");
  array.store();
}

void some_of(Context& context, Set& set, bool test) {
  Array array(context, set);
  array.line(test ? "test_some" : "wait_some", false);
  for (int left = array.n(); left > 0;) {
    int done = 0;
    const int code =
        test ? MPI_Testsome(array.n(), array.requests.data(), &done, array.indices.data(), array.statuses.data())
             : MPI_Waitsome(array.n(), array.requests.data(), &done, array.indices.data(), array.statuses.data());
    array.check(test ? "Testsome" : "Waitsome", code);
    if (done == MPI_UNDEFINED || code != MPI_SUCCESS) {
      if (code == MPI_SUCCESS) context.say("WRONG:some");
      break;
    }
    for (int i = 0; i < done; ++i)
      set[static_cast<std::size_t>(array.indices[static_cast<std::size_t>(i)])]->status.s =
          array.statuses[static_cast<std::size_t>(i)];
    left -= done;
  }
  array.store();
}

void complete_part(Context& context, Set& set) {
  // MPICH 4.0.2 treats an inactive persistent collective as complete in the calls for any and some.
  const bool all_only =
      std::any_of(set.begin(), set.end(), [](const auto& one) { return one->persistent && one->collective; });
  switch (all_only ? context.own.between(0, 1) * 7 : context.own.between(0, 8)) {
    case 0: return all_at_once(context, set, false);
    case 1: return all_at_once(context, set, true);
    case 2: return any_of(context, set, false);
    case 3: return any_of(context, set, true);
    case 4: return some_of(context, set, false);
    case 5: return some_of(context, set, true);
    default:
      for (auto& operation : set) {
        const std::int64_t choice = context.own.between(0, 2);
        if (choice == 0)
          wait_one(context, *operation);
        else
          test_one(context, *operation, choice == 1);
      }
  }
}

}  // namespace

void complete(Context& context, std::vector<OperationPtr> set) {
  if (set.empty()) return;
  for (std::size_t i = set.size(); i > 1; --i)
    std::swap(set[i - 1], set[static_cast<std::size_t>(context.own.between(0, static_cast<std::int64_t>(i) - 1))]);
  for (std::size_t from = 0; from < set.size();) {
    const std::size_t n =
        static_cast<std::size_t>(context.own.between(1, static_cast<std::int64_t>(set.size() - from)));
    Set part(set.begin() + static_cast<std::ptrdiff_t>(from), set.begin() + static_cast<std::ptrdiff_t>(from + n));
    complete_part(context, part);
    from += n;
  }
  std::sort(set.begin(), set.end(), [](const auto& x, const auto& y) { return x->number < y->number; });
  for (auto& operation : set) {
    if (!operation->persistent && operation->request.h != MPI_REQUEST_NULL)
      context.say("WRONG:request of " + operation->label);
    if (operation->report) operation->report();
  }
}

void complete_some(Context& context, const Step& step) {
  std::vector<OperationPtr> chosen, left;
  for (auto& operation : context.pending) (context.own.chance(60) ? chosen : left).push_back(operation);
  context.pending = std::move(left);
  complete(context, std::move(chosen));
}

void cancel(Context& context, const Step& step) {
  Random common(seed_of(step, 1));
  CommSlot& slot = context.pick_comm(common);
  const int source = common.chance(50) ? MPI_ANY_SOURCE : 0;
  if (slot.mine < 0) return;
  ShapeLimits limits{block_bytes(common, step.size), step.types};
  const Shape shape = draw_shape(common, limits);
  auto buffer =
      std::make_shared<Buffer>(context, Image{seed_of(step, 2), 0, shape.low(shape.count), shape.high(shape.count)});
  buffer->expected();
  Handle type = build(context, shape.type);
  auto operation = context.add("cancelled");
  // A tag that no step sends with.
  CALL(context, Irecv, static_cast<void*>(buffer->at()), static_cast<int>(shape.count), type.h, source, 30000, slot.h,
       operation->request);
  drop(context, type);
  CALL(context, Cancel, operation->request);
  operation->cancelled = true;
  operation->report = [&context, operation = operation.get(), buffer] {
    int flag = 0;
    CALL(context, Test_cancelled, operation->status, (Out<int>{&flag}));
    context.item("cancelled", flag);
    if (!flag) context.say("WRONG:cancelled");
    buffer->report(context, "cancelled");
  };
  context.finish_step(step, {operation}, true);
}

}  // namespace bestride::fuzz
