// SPDX-License-Identifier: Apache-2.0
#include <climits>
#include <utility>
#include <vector>

#include "datatype/respell.hpp"

namespace bestride::inline datatype {
namespace {

/// A datatype under construction; freed by the destructor.
class Made {
 public:
  explicit Made(const DatatypeCalls& mpi) : mpi_(mpi) {}
  Made(Made&& other) noexcept : mpi_(other.mpi_), type_(std::exchange(other.type_, MPI_DATATYPE_NULL)) {}
  ~Made() {
    if (type_ != MPI_DATATYPE_NULL) mpi_.free(&type_);
  }
  MPI_Datatype* place() noexcept { return &type_; }
  MPI_Datatype get() const noexcept { return type_; }
  MPI_Datatype take() noexcept { return std::exchange(type_, MPI_DATATYPE_NULL); }

 private:
  const DatatypeCalls& mpi_;
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
};
using BuiltType = std::optional<Made>;

class ByteTypeBuilder {
 public:
  explicit ByteTypeBuilder(const DatatypeCalls& mpi) : mpi_(mpi) {}

  BuiltType spell(const Node& node) {
    switch (node.kind) {
      case Node::Kind::block: return block(node.size);
      case Node::Kind::loop: return loop(node);
      case Node::Kind::sequence: return sequence(node);
      case Node::Kind::list: return list(node);
    }
    return std::nullopt;
  }

  /// The types made so far.
  int types_alive() const noexcept { return types_alive_; }

 private:
  BuiltType kept(int error, Made& made) {
    if (error != MPI_SUCCESS) return std::nullopt;
    ++types_alive_;
    return BuiltType(std::move(made));
  }

  BuiltType block(std::int64_t bytes) {
    Made made(mpi_);
    if (bytes <= INT_MAX) return kept(mpi_.contiguous(static_cast<int>(bytes), MPI_BYTE, made.place()), made);
#if MPI_VERSION >= 4
    if (mpi_.contiguous_c) return kept(mpi_.contiguous_c(bytes, MPI_BYTE, made.place()), made);
#endif
    return std::nullopt;
  }
  BuiltType loop(const Node& node) {
    const BuiltType body = spell(*node.body);
    if (!body) return std::nullopt;
    Made made(mpi_);
    if (node.count <= INT_MAX)
      return kept(mpi_.create_hvector(static_cast<int>(node.count), 1, node.stride, body->get(), made.place()), made);
#if MPI_VERSION >= 4
    if (mpi_.create_hvector_c)
      return kept(mpi_.create_hvector_c(node.count, 1, node.stride, body->get(), made.place()), made);
#endif
    return std::nullopt;
  }
  BuiltType sequence(const Node& node) {
    if (node.items.size() > INT_MAX) return std::nullopt;
    std::vector<Made> parts;
    std::vector<int> lengths(node.items.size(), 1);
    std::vector<MPI_Aint> offsets;
    std::vector<MPI_Datatype> types;
    for (const Item& item : node.items) {
      BuiltType part = spell(*item.node);
      if (!part) return std::nullopt;
      offsets.push_back(item.offset);
      types.push_back(part->get());
      parts.push_back(std::move(*part));
    }
    Made made(mpi_);
    return kept(
        mpi_.create_struct(static_cast<int>(types.size()), lengths.data(), offsets.data(), types.data(), made.place()),
        made);
  }
  BuiltType list(const Node& node) {
    if (node.offsets.size() > INT_MAX) return std::nullopt;
    std::vector<int> lengths;
    lengths.reserve(node.offsets.size());
    for (std::size_t i = 0; i < node.offsets.size(); ++i) {
      const std::int64_t length = node.lengths.empty() ? node.block_length : node.lengths[i];
      if (length > INT_MAX) return std::nullopt;
      lengths.push_back(static_cast<int>(length));
    }
    const std::vector<MPI_Aint> offsets(node.offsets.begin(), node.offsets.end());
    Made made(mpi_);
    return kept(
        mpi_.create_hindexed(static_cast<int>(lengths.size()), lengths.data(), offsets.data(), MPI_BYTE, made.place()),
        made);
  }

  const DatatypeCalls& mpi_;
  int types_alive_ = 0;
};

}  // namespace

std::optional<Respelled> respell_as_bytes(const Layout& layout, const DatatypeCalls& mpi) {
  const Node* outer = layout.root();
  if (!outer) return std::nullopt;
  // The outermost loop becomes the count, as in respell(): the library handles many short elements faster than a long
  // one.
  const bool loop = outer->kind == Node::Kind::loop && outer->stride > 0;
  ByteTypeBuilder builder(mpi);
  BuiltType body = builder.spell(loop ? *outer->body : *outer);
  if (!body) return std::nullopt;
  Made type(mpi);
  const std::int64_t extent = loop ? outer->stride : outer->size;
  if (mpi.create_resized(body->get(), 0, extent, type.place()) != MPI_SUCCESS ||
      mpi.commit(type.place()) != MPI_SUCCESS)
    return std::nullopt;
  return Respelled{loop ? outer->count : 1, type.take(), extent, builder.types_alive() + 1};
}

}  // namespace bestride::inline datatype
