#include "ir/access_hook.h"

namespace bevel {
AccessHook accessHook = {nullptr, nullptr, nullptr};
} // namespace bevel
