#include "sched/steps/get_producers.h"

#include "sched/steps/step_impl.h"

namespace bevel::steps {

constexpr const char* kDoc =
    R"(Gives the blocks of the same scope that write what a block reads, in program order.)";

static Result<std::vector<std::string>> check(const Schedule& sch, const GetProducers& s) {
  BEVEL_TRY(BlockSite site, siteOf(sch, s.block));
  return site.info.names(site.info.producers(site.self));
}

static void apply(Schedule& sch, GetProducers& s, std::vector<std::string>&& names) {
  s.results = sch.addBlocks(std::move(names));
}

STEP_INFO(GetProducers, "get_producers", kDoc)

} // namespace bevel::steps
