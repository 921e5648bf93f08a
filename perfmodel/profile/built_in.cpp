// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <new>
#include <utility>

#include "perfmodel/profile/built_in_model.hpp"
#include "perfmodel/profile/complete.hpp"
#include "perfmodel/profile/profile.hpp"

namespace bestride::inline perfmodel {

const MachineProfile& MachineProfile::built_in() noexcept {
  // Never destroyed: MPI calls may come after static destructors have run.
  alignas(MachineProfile) static std::byte storage[sizeof(MachineProfile)];
  static const MachineProfile* const profile = ::new (storage) MachineProfile(&built_in_curves);
  return *profile;
}

MachineProfile MachineProfile::from(const Measurements& measured, MachineFingerprint fingerprint,
                                    const DeviceMeasurements& device, CollectiveMeasurements collectives) {
  MappedPtr<Measurements> filled = make_mapped<Measurements>(measured);
  complete(filled.get(), built_in_curves);
  MachineProfile profile(std::move(filled), std::move(fingerprint), device, std::move(collectives));
  profile.measured_ = make_mapped<Measurements>(measured);
  return profile;
}

}  // namespace bestride::inline perfmodel
