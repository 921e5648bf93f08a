// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/profile/image.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "base/input_file.hpp"
#include "base/replace_file.hpp"
#include "kernels/hash.hpp"

namespace bestride::inline perfmodel {
namespace {

/// Another number if complete() makes other curves of the same measurements.
constexpr char format[16] = "bestride-image3";

/// The file begins with it; the curves and the rest follow.
struct Header {
  char format[16];
  char version[16];            ///< of the library
  std::uint64_t curves_bytes;  ///< of this version's Measurements
  std::uint64_t rest_bytes;
  std::uint64_t profile_bytes;  ///< of the profile's file
  std::uint64_t profile_hash;   ///< of its parts of 16 KiB, each with the hash of those before it as the seed
  std::uint64_t curves_hash;
  std::uint64_t rest_hash;
};
static_assert(std::is_trivially_copyable_v<Header> && std::is_trivially_copyable_v<Measurements>);

/// Of the image with these curves and this rest for the present content of the file `profile`. No value: the file can't
/// be read.
std::optional<Header> header_of(const std::string& profile, const Measurements& curves, const std::string& rest) {
  Result<InputFile> file = InputFile::open(profile, most_profile_bytes);
  if (!file) return std::nullopt;
  Header header{};
  std::memcpy(header.format, format, sizeof format);
  std::string_view(BESTRIDE_VERSION).copy(header.version, sizeof header.version);
  header.curves_bytes = sizeof curves;
  header.rest_bytes = rest.size();
  header.curves_hash = content_hash(&curves, sizeof curves);
  header.rest_hash = content_hash(rest.data(), static_cast<std::int64_t>(rest.size()));
  std::byte part[16 * 1024];
  while (const std::size_t here = file->read(part, sizeof part)) {
    header.profile_hash = content_hash(part, static_cast<std::int64_t>(here), header.profile_hash);
    header.profile_bytes += here;
  }
  return header;
}

}  // namespace

std::string image_path(const std::string& profile) { return profile + ".image"; }

bool write_image(const std::string& profile, const Measurements& curves, const std::string& rest) {
  // Member by member into zeroed pages, so that the padding has a defined value.
  const MappedPtr<Measurements> padded = make_mapped<Measurements>();
  padded->contiguous = curves.contiguous;
  padded->grids = curves.grids;
  padded->nests_scale = curves.nests_scale;
  padded->built_in = curves.built_in;
  const std::optional<Header> header = header_of(profile, *padded, rest);
  if (!header) return false;
  std::string text(sizeof *header + sizeof *padded, '\0');
  std::memcpy(text.data(), &*header, sizeof *header);
  std::memcpy(text.data() + sizeof *header, padded.get(), sizeof *padded);
  return static_cast<bool>(replace_file(image_path(profile), text + rest));
}

std::optional<ProfileImage> read_image(const std::string& profile) {
  Result<InputFile> file = InputFile::open(image_path(profile), most_profile_bytes);
  constexpr std::size_t fixed = sizeof(Header) + sizeof(Measurements);
  if (!file || file->size() < fixed) return std::nullopt;
  Header header;
  ProfileImage image{make_mapped<Measurements>(), std::string(file->size() - fixed, '\0')};
  if (file->read(&header, sizeof header) != sizeof header ||
      file->read(image.curves.get(), sizeof(Measurements)) != sizeof(Measurements) ||
      file->read(image.rest.data(), image.rest.size()) != image.rest.size())
    return std::nullopt;
  const std::optional<Header> expected = header_of(profile, *image.curves, image.rest);
  if (!expected || std::memcmp(&header, &*expected, sizeof header) != 0) return std::nullopt;
  return image;
}

}  // namespace bestride::inline perfmodel
