// SPDX-License-Identifier: Apache-2.0
#include "datatypes.hpp"

namespace halo3d {
namespace {

/// An array to exchange, and the exchanged part of each of its cells.
struct Part {
  std::byte* base;
  Datatype cell;  ///< extent: one cell of the array
  MPI_Aint cell_bytes;
};

Datatype contiguous(int count, MPI_Datatype of) {
  MPI_Datatype made = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(count, of, &made);
  return Datatype(made);
}

Datatype resized(MPI_Datatype of, MPI_Aint extent) {
  MPI_Datatype made = MPI_DATATYPE_NULL;
  MPI_Type_create_resized(of, 0, extent, &made);
  return Datatype(made);
}

std::vector<Part> parts_of(Field& field, const Options& options) {
  const MPI_Datatype element = field.element() == Element::float32 ? MPI_FLOAT : MPI_DOUBLE;
  const MPI_Aint cell_bytes = MPI_Aint(field.element_bytes()) * field.cell_stride();
  const bool whole_structs = field.storage() == Storage::interleaved && options.messages == Messages::joined;
  std::vector<Part> parts;
  if (whole_structs) {
    const Datatype values = contiguous(options.quantities_exchanged(), element);
    parts.push_back({field.first(0), resized(values.get(), cell_bytes), cell_bytes});
  } else {
    for (int quantity = 0; quantity < options.quantities_exchanged(); ++quantity)
      parts.push_back({field.first(quantity), resized(element, cell_bytes), cell_bytes});
  }
  return parts;
}

MPI_Aint offset_of(const Field& field, const Triple& cell, MPI_Aint cell_bytes) {
  const Triple& extents = field.extents();
  return ((MPI_Aint(cell[0]) * extents[1] + cell[1]) * extents[2] + cell[2]) * cell_bytes;
}

FaceType as_subarray(const Field& field, const Region& region, const Part& part) {
  MPI_Datatype made = MPI_DATATYPE_NULL;
  MPI_Type_create_subarray(3, field.extents().data(), region.size.data(), region.start.data(), MPI_ORDER_C,
                           part.cell.get(), &made);
  return {part.base, 0, Datatype(made)};
}

FaceType as_vector(const Field& field, const Region& region, const Part& part) {
  MPI_Datatype plane = MPI_DATATYPE_NULL, box = MPI_DATATYPE_NULL;
  MPI_Type_vector(region.size[1], region.size[2], field.extents()[2], part.cell.get(), &plane);
  const Datatype owned(plane);
  MPI_Type_create_hvector(region.size[0], 1, offset_of(field, {1, 0, 0}, part.cell_bytes), plane, &box);
  return {part.base, offset_of(field, region.start, part.cell_bytes), Datatype(box)};
}

FaceType as_hindexed(const Field& field, const Region& region, const Part& part) {
  std::vector<int> lengths;
  std::vector<MPI_Aint> displacements;
  for (int z = 0; z < region.size[0]; ++z)
    for (int y = 0; y < region.size[1]; ++y) {
      lengths.push_back(region.size[2]);
      displacements.push_back(offset_of(field, {z, y, 0}, part.cell_bytes));
    }
  MPI_Datatype made = MPI_DATATYPE_NULL;
  MPI_Type_create_hindexed(int(lengths.size()), lengths.data(), displacements.data(), part.cell.get(), &made);
  return {part.base, offset_of(field, region.start, part.cell_bytes), Datatype(made)};
}

FaceType join(const std::vector<FaceType>& faces) {
  std::vector<MPI_Aint> addresses;
  std::vector<MPI_Datatype> types;
  for (const FaceType& face : faces) {
    addresses.push_back(face.absolute());
    types.push_back(face.type.get());
  }
  return {MPI_BOTTOM, 0, struct_of(addresses, types)};
}

}  // namespace

MPI_Aint FaceType::absolute() const {
  MPI_Aint address = 0;
  if (base != MPI_BOTTOM) MPI_Get_address(this->address(), &address);
  return address;
}

Datatype struct_of(const std::vector<MPI_Aint>& displacements, const std::vector<MPI_Datatype>& types) {
  const std::vector<int> lengths(types.size(), 1);
  MPI_Datatype made = MPI_DATATYPE_NULL;
  MPI_Type_create_struct(int(types.size()), lengths.data(), displacements.data(), types.data(), &made);
  return Datatype(made);
}

std::vector<FaceType> face_types_of(Field& field, const Region& region, const Options& options) {
  std::vector<FaceType> faces;
  for (const Part& part : parts_of(field, options)) {
    switch (options.spelling) {
      case Spelling::subarray: faces.push_back(as_subarray(field, region, part)); break;
      case Spelling::vector: faces.push_back(as_vector(field, region, part)); break;
      case Spelling::hindexed: faces.push_back(as_hindexed(field, region, part)); break;
    }
  }
  if (options.messages == Messages::joined && faces.size() > 1) {
    FaceType joined = join(faces);
    faces.clear();
    faces.push_back(std::move(joined));
  }
  for (FaceType& face : faces) face.type.commit();
  return faces;
}

}  // namespace halo3d
