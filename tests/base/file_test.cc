// Writing files: what the path leads to is replaced or written through, never the way to it.
#include "base/file.h"

#include <fcntl.h>
#include <filesystem>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace bevel {
namespace {

namespace fs = std::filesystem;

class WriteFile : public testing::Test {
protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "bevel_file_test_XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder = name;
  }
  void TearDown() override { fs::remove_all(folder); }
  std::string in(const char* name) const { return (folder / name).string(); }
  fs::path folder;
};

TEST_F(WriteFile, FollowsLinks) {
  fs::create_directory(folder / "sub");
  ASSERT_TRUE(writeFile(in("sub/file"), std::string_view("old")));
  fs::create_symlink("sub/file", folder / "link");
  fs::create_symlink("link", folder / "second");
  ASSERT_TRUE(writeFile(in("second"), std::string_view("new")));
  EXPECT_TRUE(fs::is_symlink(folder / "second") && fs::is_symlink(folder / "link"));
  EXPECT_EQ(*readFile(in("sub/file")), "new");
  fs::create_symlink("sub/later", folder / "dangling");
  ASSERT_TRUE(writeFile(in("dangling"), std::string_view("made")));
  EXPECT_TRUE(fs::is_symlink(folder / "dangling"));
  EXPECT_EQ(*readFile(in("sub/later")), "made");
  fs::create_symlink("around", folder / "around");
  EXPECT_FALSE(writeFile(in("around"), std::string_view("x")));
}

TEST_F(WriteFile, WritesThroughWhatIsNoRegularFile) {
  ASSERT_EQ(mkfifo(in("pipe").c_str(), 0600), 0);
  int reader = open(in("pipe").c_str(), O_RDONLY | O_NONBLOCK); // lets the writer open its end
  ASSERT_GE(reader, 0);
  EXPECT_TRUE(writeFile(in("pipe"), std::string_view("through")));
  EXPECT_TRUE(fs::is_fifo(folder / "pipe"));
  char got[16] = {};
  EXPECT_EQ(read(reader, got, sizeof got), 7);
  EXPECT_STREQ(got, "through");
  close(reader);
  fs::create_symlink("/dev/null", folder / "null");
  EXPECT_TRUE(writeFile(in("null"), std::string_view("gone")));
  EXPECT_TRUE(fs::is_character_file(folder / "null"));
  EXPECT_FALSE(writeFile(folder.string(), std::string_view("x"))) << "a folder";
}

TEST_F(WriteFile, LibrariesAreOnlyWrittenToRegularFiles) {
  ASSERT_EQ(mkfifo(in("pipe").c_str(), 0600), 0);
  EXPECT_EQ(replaceablePath(in("pipe")).error().code, ErrorCode::kIo);
  fs::create_symlink("m.so", folder / "link");
  EXPECT_EQ(*replaceablePath(in("link")), in("m.so"));
  EXPECT_EQ(*replaceablePath(in("m.so")), in("m.so"));
}

} // namespace
} // namespace bevel
