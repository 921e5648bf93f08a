// SPDX-License-Identifier: Apache-2.0
// Types that live over several steps, and all operations on a type other than communication.
#include "tests/fuzz/programs/common.h"
#include "tests/fuzz/programs/context.hpp"

namespace bestride::fuzz {
namespace {

bool predefined_handle(MPI_Datatype type) {
  int integers = 0, addresses = 0, types = 0, combiner = 0;
  PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
  return combiner == MPI_COMBINER_NAMED;
}

/// Reads envelope and contents, and frees the returned handles, as MPI requires.
void inspect(Context& context, MPI_Datatype type, int depth) {
  int integers = 0, addresses = 0, types = 0, combiner = 0;
  CALL(context, Type_get_envelope, type, (Out<int>{&integers}), (Out<int>{&addresses}), (Out<int>{&types}),
       (Out<int>{&combiner}));
  context.item("combiner", combiner);
  if (combiner == MPI_COMBINER_NAMED) return;
  std::vector<int> i(static_cast<std::size_t>(integers) + 1);
  std::vector<MPI_Aint> a(static_cast<std::size_t>(addresses) + 1);
  std::vector<MPI_Datatype> t(static_cast<std::size_t>(types) + 1);
  std::string name;
  if (context.recorder) {
    name = context.recorder->fresh("inner", "int *");
    context.line(name + " = calloc(" + std::to_string(types + 1) + ", sizeof(int));");
    context.line("MPI_Type_get_contents(" + context.recorder->handle(type) + ", " + std::to_string(integers) + ", " +
                 std::to_string(addresses) + ", " + std::to_string(types) + ", (int[" + std::to_string(integers + 1) +
                 "]){0}, (MPI_Aint[" + std::to_string(addresses + 1) + "]){0}, " + name + ");");
  }
  const int code = MPI_Type_get_contents(type, integers, addresses, types, i.data(), a.data(), t.data());
  if (code != MPI_SUCCESS) context.say("!Type_get_contents=" + std::to_string(fuzz_class(code)));
  std::uint64_t digest = fuzz_digest(i.data(), 4 * integers) ^ fuzz_digest(a.data(), 8 * addresses);
  context.item("contents", static_cast<std::int64_t>(digest & 0xffffffff));
  for (int k = 0; k < types; ++k) {
    MPI_Datatype& inner = t[static_cast<std::size_t>(k)];
    if (predefined_handle(inner)) {
      context.item("inner", inner);
      continue;
    }
    if (context.recorder) context.recorder->bind(inner, name + "[" + std::to_string(k) + "]");
    if (depth > 0) inspect(context, inner, depth - 1);
    CALL(context, Type_free, Gone{&inner});
  }
}

void bounds(Context& context, MPI_Datatype type) {
  MPI_Aint lower = 0, extent = 0, true_lower = 0, true_extent = 0;
  int size = 0;
  MPI_Count more = 0;
  CALL(context, Type_get_extent, type, (Out<MPI_Aint>{&lower}), (Out<MPI_Aint>{&extent}));
  CALL(context, Type_get_true_extent, type, (Out<MPI_Aint>{&true_lower}), (Out<MPI_Aint>{&true_extent}));
  CALL(context, Type_size, type, (Out<int>{&size}));
  CALL(context, Type_size_x, type, (Out<MPI_Count>{&more}));
  context.item("lb", lower), context.item("extent", extent), context.item("true_lb", true_lower),
      context.item("true_extent", true_extent);
  context.item("size", size), context.item("size_x", more);
}

/// Attributes whose callbacks log their calls. `refuse`: the first MPI_Type_free fails.
void attributes(Context& context, LiveType& type, bool refuse) {
  int keyval = MPI_KEYVAL_INVALID;
  CALL(context, Type_create_keyval, (Named<MPI_Type_copy_attr_function*>{fuzz_type_copy, "fuzz_type_copy"}),
       (Named<MPI_Type_delete_attr_function*>{fuzz_type_delete, "fuzz_type_delete"}), (New{&keyval, "key"}),
       reinterpret_cast<void*>(3));
  MPI_Datatype copy = MPI_DATATYPE_NULL;
  const bool named = type.mine.type.combiner == test::Combiner::named;
  CALL(context, Type_dup, type.handle.h, (New{&copy, "t"}));
  CALL(context, Type_set_attr, named ? copy : type.handle.h, keyval, reinterpret_cast<void*>(10 + (refuse ? 1 : 0)));
  MPI_Datatype third = MPI_DATATYPE_NULL;
  CALL(context, Type_dup, named ? copy : type.handle.h, (New{&third, "t"}));
  void* value = nullptr;
  int flag = 0;
  CALL(context, Type_get_attr, third, keyval, (Out<void*>{&value}), (Out<int>{&flag}));
  context.item("attr", flag ? reinterpret_cast<std::intptr_t>(value) : -1);
  CALL(context, Type_free, Gone{&third});
  if (refuse) {
    // MPICH 4.0.2 loses a reference when it refuses to free a type, so the type is kept but not used again.
    MPI_Datatype refused = MPI_DATATYPE_NULL;
    CALL(context, Type_dup, type.handle.h, (New{&refused, "t"}));
    CALL(context, Type_set_attr, refused, keyval, reinterpret_cast<void*>(77));
    fuzz_refuse_delete = 1;
    context.line("fuzz_refuse_delete = 1;");
    CALL(context, Type_free, Gone{&refused});
    fuzz_refuse_delete = 0;
    context.line("fuzz_refuse_delete = 0;");
  }
  if (!named) CALL(context, Type_delete_attr, type.handle.h, keyval);
  CALL(context, Type_free, Gone{&copy});
  CALL(context, Type_free_keyval, Gone{&keyval});
}

}  // namespace

void make_type(Context& context, const Step& step) {
  if (context.types.size() >= 8) return;
  Random common(seed_of(step, 1));
  LiveType type;
  type.shape = draw_shape(common, {block_bytes(common, std::min(step.size, 1)), step.types});
  type.shape.count = 1;
  const bool deep = common.chance(2) && std::getenv("FUZZ_DEEP");
  Random spelling(seed_of(step, 2, static_cast<std::uint64_t>(context.rank)));
  type.mine = respell(spelling, type.shape, std::min(step.types, 2), true);
  type.handle = build(context, type.mine.type, true, context.own.chance(30));
  if (deep && type.handle.owned && context.rank % 2 == 1) {
    // Deeper than the recursion limits.
    context.line("t_deep = " + (context.recorder ? context.recorder->handle(type.handle.h) : "") + ";");
    MPI_Datatype at = type.handle.h;
    for (int i = 0; i < 1005; ++i) {
      MPI_Datatype outer;
      MPI_Type_contiguous(1, at, &outer);
      MPI_Type_free(&at);
      at = outer;
    }
    MPI_Type_commit(&at);
    type.handle.h = at;
    if (context.recorder) {
      const std::string name = context.recorder->fresh("t", "int");
      context.line(name + " = nested(t_deep, 1005);");
      context.recorder->bind(at, name);
    }
  }
  const std::string name = "type " + std::to_string(step.number);
  if (type.handle.owned && context.own.chance(20)) CALL(context, Type_set_name, type.handle.h, name.c_str());
  bounds(context, type.handle.h);
  context.types.push_back(std::move(type));
}

void use_type(Context& context, const Step& step) {
  if (context.types.empty()) return make_type(context, step);
  LiveType& type = context.types[context.own.bits() % context.types.size()];
  if (context.depth > 0) return inspect(context, type.handle.h, 1);
  switch (context.own.between(0, 7)) {
    case 0:
    case 1: return inspect(context, type.handle.h, 2);
    case 2: {  // a second commit is a no-op
      CALL(context, Type_commit, Gone{&type.handle.h});
      return;
    }
    case 3: {
      MPI_Datatype copy = MPI_DATATYPE_NULL, outer = MPI_DATATYPE_NULL;
      CALL(context, Type_dup, type.handle.h, (New{&copy, "t"}));
      CALL(context, Type_contiguous, 3, copy, (New{&outer, "t"}));
      CALL(context, Type_commit, Gone{&outer});
      inspect(context, outer, 2);
      CALL(context, Type_free, Gone{&copy});
      bounds(context, outer);
      CALL(context, Type_free, Gone{&outer});
      return;
    }
    case 4: return attributes(context, type, false);
    case 5: return attributes(context, type, true);
    case 6: {  // a predefined type is not freed
      MPI_Datatype named = context.own.chance(50) ? MPI_DOUBLE_INT : MPI_INT;
      CALL(context, Type_free, Gone{&named});
      return;
    }
    default: {
      char name[MPI_MAX_OBJECT_NAME] = {};
      int length = 0;
      CALL(context, Type_get_name, type.handle.h, (Scratch<char>{name, MPI_MAX_OBJECT_NAME}), (Out<int>{&length}));
      context.say(std::string("name=\"") + name + "\"");
      return bounds(context, type.handle.h);
    }
  }
}

void free_type(Context& context, const Step& step) {
  if (context.types.empty() || context.depth > 0) return;
  Random common(seed_of(step, 1));
  const auto at = static_cast<std::ptrdiff_t>(common.bits() % context.types.size());
  drop(context, context.types[static_cast<std::size_t>(at)].handle);
  context.types.erase(context.types.begin() + at);
}

void recommit(Context& context, const Step& step) {
  for (int i = 0; i < 300; ++i)
    for (LiveType& type : context.types) {
      MPI_Datatype same = type.handle.h;
      MPI_Type_commit(&same);
    }
  for (LiveType& type : context.types)
    if (context.recorder) context.line("recommit(" + context.recorder->handle(type.handle.h) + ", 300);");
}

}  // namespace bestride::fuzz
