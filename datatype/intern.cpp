// SPDX-License-Identifier: Apache-2.0
// The intern table: one Layout for each byte sequence in use. An entry is removed when its layout loses its last owner.
#include <mutex>
#include <unordered_map>

#include "datatype/build.hpp"

namespace bestride::inline datatype {
namespace {

struct Key {
  std::int64_t offset;
  std::int64_t size;
  Fingerprint content;
  bool operator==(const Key&) const = default;
};
struct KeyHash {
  std::size_t operator()(const Key& key) const noexcept {
    return static_cast<std::size_t>(key.content.a ^ (static_cast<std::uint64_t>(key.offset) * 0x9e3779b97f4a7c15u));
  }
};

struct Table {
  std::mutex mutex;
  std::unordered_map<Key, std::weak_ptr<const Layout>, KeyHash> layouts;
};
Table& table() {
  static Table* const all = new Table;  // never destroyed: a layout may be released after static destructors ran
  return *all;
}

/// Removes the key when the last owner releases the layout, unless a new layout has taken the key meanwhile.
struct Release {
  Key key;
  void operator()(const Layout* layout) const noexcept {
    {
      Table& all = table();
      const std::lock_guard lock(all.mutex);
      const auto found = all.layouts.find(key);
      if (found != all.layouts.end() && found->second.expired()) all.layouts.erase(found);
    }
    delete layout;
  }
};

}  // namespace

LayoutPtr intern(const Placed& placed) {
  const std::int64_t offset = placed.node ? placed.offset : 0;
  const Key key{offset, placed.node ? placed.node->size : 0, placed.node ? placed.node->content : Fingerprint{}};
  Table& all = table();
  // Created before the lock is taken: if it is not needed, its release must find the mutex unlocked.
  std::shared_ptr<const Layout> fresh(new Layout(offset, placed.node), Release{key});
  std::shared_ptr<const Layout> known;
  {
    const std::lock_guard lock(all.mutex);
    std::weak_ptr<const Layout>& slot = all.layouts[key];
    known = slot.lock();
    if (!known) slot = fresh;
  }
  return known ? known : fresh;
}

std::size_t interned_layouts() {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  return all.layouts.size();
}

}  // namespace bestride::inline datatype
