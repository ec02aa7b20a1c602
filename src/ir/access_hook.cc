#include "ir/access_hook.h"

namespace bevel {
AccessHook accessHook = {nullptr, nullptr};
} // namespace bevel
