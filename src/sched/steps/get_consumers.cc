#include "sched/steps/get_consumers.h"

#include "sched/steps/step_impl.h"

namespace bevel::steps {

constexpr const char* kDoc =
    R"(Gives the blocks of the same scope that read what a block writes, in program order.)";

static Result<std::vector<std::string>> check(const Schedule& sch, const GetConsumers& s) {
  BEVEL_TRY(BlockSite site, siteOf(sch, s.block));
  return site.info.names(site.info.consumers(site.self));
}

static void apply(Schedule& sch, GetConsumers& s, std::vector<std::string>&& names) {
  s.results = sch.addBlocks(std::move(names));
}

STEP_INFO(GetConsumers, "get_consumers", kDoc)

} // namespace bevel::steps
