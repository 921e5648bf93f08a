// SPDX-License-Identifier: Apache-2.0
#include "datatype/respell.hpp"

#include <climits>

namespace bestride::inline datatype {
namespace {

/// A datatype under construction; each step frees the datatype of the previous one.
class TypeBuilder {
 public:
  TypeBuilder(MPI_Datatype leaf, const DatatypeCalls& mpi) : mpi_(mpi), type_(leaf) {}
  ~TypeBuilder() {
    if (owned_) mpi_.free(&type_);
  }
  TypeBuilder(const TypeBuilder&) = delete;
  TypeBuilder& operator=(const TypeBuilder&) = delete;

  bool contiguous(std::int64_t count) {
    if (count == 1) return true;
    MPI_Datatype next = MPI_DATATYPE_NULL;
    if (count <= INT_MAX) return take(mpi_.contiguous(static_cast<int>(count), type_, &next), next);
#if MPI_VERSION >= 4
    if (mpi_.contiguous_c) return take(mpi_.contiguous_c(count, type_, &next), next);
#endif
    return false;
  }
  bool strided(std::int64_t count, std::int64_t stride) {
    MPI_Datatype next = MPI_DATATYPE_NULL;
    if (count <= INT_MAX) return take(mpi_.create_hvector(static_cast<int>(count), 1, stride, type_, &next), next);
#if MPI_VERSION >= 4
    if (mpi_.create_hvector_c) return take(mpi_.create_hvector_c(count, 1, stride, type_, &next), next);
#endif
    return false;
  }
  bool resized(std::int64_t extent) {
    MPI_Datatype next = MPI_DATATYPE_NULL;
    return take(mpi_.create_resized(type_, 0, extent, &next), next);
  }
  /// The committed type; the caller owns it.
  MPI_Datatype commit() {
    if (mpi_.commit(&type_) != MPI_SUCCESS) return MPI_DATATYPE_NULL;
    owned_ = false;
    return type_;
  }
  /// The types made so far: the current one and its components.
  int types_alive() const noexcept { return types_alive_; }

 private:
  bool take(int error, const MPI_Datatype& next) {  // by reference: read after the call that sets it
    if (error != MPI_SUCCESS) return false;
    if (owned_) mpi_.free(&type_);
    type_ = next;
    owned_ = true;
    ++types_alive_;
    return true;
  }
  const DatatypeCalls& mpi_;
  MPI_Datatype type_;
  bool owned_ = false;
  int types_alive_ = 0;
};

bool build(TypeBuilder& builder, const Node& node, std::int64_t leaf_size) {
  if (node.kind == Node::Kind::block) return builder.contiguous(node.size / leaf_size);
  return build(builder, *node.body, leaf_size) && builder.strided(node.count, node.stride);
}

}  // namespace

std::optional<Respelled> respell(const Layout& layout, MPI_Datatype leaf, std::int64_t leaf_size,
                                 const DatatypeCalls& mpi) {
  if (!can_respell(layout, leaf, leaf_size)) return std::nullopt;
  const Node& outer = *layout.root();
  const bool loop = outer.kind == Node::Kind::loop;
  TypeBuilder builder(leaf, mpi);
  if (!build(builder, loop ? *outer.body : outer, leaf_size)) return std::nullopt;
  const std::int64_t extent = loop ? outer.stride : outer.size + leaf_size;
  if (!builder.resized(extent)) return std::nullopt;
  const MPI_Datatype type = builder.commit();
  if (type == MPI_DATATYPE_NULL) return std::nullopt;
  return Respelled{loop ? outer.count : 1, type, extent, builder.types_alive()};
}

}  // namespace bestride::inline datatype
