// Targets: the table, the text form, the host.
#include "target/target.h"

#include <gtest/gtest.h>

using namespace bevel;

TEST(Target, EveryNamedTargetRoundTrips) {
  ASSERT_GE(Target::names().size(), 10u);
  for (const std::string& name : Target::names()) {
    Result<Target> t = Target::parse(name);
    ASSERT_TRUE(t) << t.error().str();
    EXPECT_EQ(t->str(), name);
  }
}

TEST(Target, ChangesRoundTrip) {
  Result<Target> t = Target::parse("x86-64-v3,cores=7,l2=1048576,tune=znver3,vector=128,features=+gfni:-fma");
  ASSERT_TRUE(t) << t.error().str();
  EXPECT_EQ(t->limits.cores, 7);
  EXPECT_EQ(t->limits.l2, 1 << 20);
  EXPECT_EQ(t->limits.vectorBits, 128);
  EXPECT_FALSE(t->fma);
  EXPECT_TRUE(t->f16c);
  EXPECT_EQ(t->str(), "x86-64-v3,tune=znver3,vector=128,l2=1048576,cores=7,features=+gfni:-fma");
  EXPECT_EQ(*Target::parse(t->str()), *t);
}

TEST(Target, HostRoundTripsAndRunsOnItself) {
  const Target& host = Target::host();
  EXPECT_EQ(*Target::parse("host"), host);
  EXPECT_EQ(*Target::parse(host.str()), host);
  EXPECT_TRUE(host.runsOn(host));
  EXPECT_GE(host.limits.cores, 1);
  EXPECT_GT(host.limits.l1, 0);
}

TEST(Target, CodeKeyIgnoresCachesAndCores) {
  EXPECT_EQ(Target::parse("x86-64-v3,cores=9,l1=1")->codeKey(), Target::parse("x86-64-v3")->codeKey());
  EXPECT_NE(Target::parse("x86-64-v3,vector=128")->codeKey(), Target::parse("x86-64-v3")->codeKey());
}

TEST(Target, RunsOnOrdersLevels) {
  Target v2 = *Target::parse("x86-64-v2"), v3 = *Target::parse("x86-64-v3"), v4 = *Target::parse("x86-64-v4");
  EXPECT_TRUE(v3.runsOn(v4));
  EXPECT_FALSE(v4.runsOn(v3));
  EXPECT_TRUE(v2.runsOn(v3));
  EXPECT_FALSE(Target::parse("aarch64")->runsOn(v4));
  EXPECT_FALSE(Target::parse("riscv64-v")->runsOn(*Target::parse("riscv64")));
  EXPECT_TRUE(Target::parse("riscv64")->runsOn(*Target::parse("riscv64-v")));
  EXPECT_FALSE(Target::parse("x86-64-v3,features=+gfni")->runsOn(v3));
}

TEST(Target, EveryRowHasAnInstructionSet) {
  for (const std::string& name : Target::names()) {
    const Architecture& row = Target::parse(name)->architecture();
    EXPECT_GT(row.pointerBits, 0) << name;
    EXPECT_EQ(row.elfMachine != 0, row.linkEmulation != nullptr) << name;
  }
  EXPECT_EQ(Target::parse("x86-64,triple=s390x-unknown-linux-gnu")->architecture().pointerBits, 0);
}

TEST(Target, Lanes) {
  Target v3 = *Target::parse("x86-64-v3");
  EXPECT_EQ(v3.lanes(kFloat32), 8);
  EXPECT_EQ(v3.lanes(DType::Int(8)), 32);
  EXPECT_EQ(Target::parse("x86-64-v2")->lanes(DType::Float(64)), 2);
}

TEST(Target, BadTextIsNamed) {
  for (const char* text :
       {"", "pentium", "x86-64-v3,cores", "x86-64-v3,cores=x", "x86-64-v3,cores=0", "x86-64-v3,speed=3",
        "x86-64-v3,features=gfni", "x86-64-v3,vector=100", "x86-64-v3,cores=99999999999999999999"}) {
    Result<Target> t = Target::parse(text);
    ASSERT_FALSE(t) << text;
    EXPECT_EQ(t.error().code, ErrorCode::kInvalid);
  }
  EXPECT_NE(Target::parse("pentium").error().hint.find("x86-64-v3"), std::string::npos);
}
