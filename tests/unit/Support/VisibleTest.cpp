//===- VisibleTest.cpp - other people's names on a terminal ---------------===//
#include "dmxc/Support/Visible.h"
#include "dmxc/Support/Diagnostic.h"

#include <gtest/gtest.h>

namespace dmxc::test {
namespace {

TEST(Visible, TextStaysWhatItIs) {
  for (const char *text : {"", "enc/MatMul_2", "a \\n b", "caf\xc3\xa9", "\xe5\xb1\x82", "\xf0\x9f\x99\x82"})
    EXPECT_EQ(visible(text), text);
}

TEST(Visible, ControlCharactersAreWritten) {
  EXPECT_EQ(visible("a\x1b[31mb"), "a\\x1b[31mb");
  EXPECT_EQ(visible("a\nb\tc\rd"), "a\\nb\\tc\\rd");
  EXPECT_EQ(visible(std::string_view("\0\x7f", 2)), "\\x00\\x7f");
  EXPECT_EQ(visible("\xc2\x9b"
                    "2J"),
            "\\u009b2J");                        // CSI in one character
  EXPECT_EQ(visible("\xe2\x80\xae"), "\\u202e"); // what follows reads from right to left
}

TEST(Visible, BytesThatAreNoTextAreWritten) {
  EXPECT_EQ(visible("\x9b\xff"), "\\x9b\\xff");
  EXPECT_EQ(visible("\xc3"), "\\xc3");                   // cut off
  EXPECT_EQ(visible("\xc0\x8a"), "\\xc0\\x8a");          // a line feed in two bytes
  EXPECT_EQ(visible("\xed\xa0\x80"), "\\xed\\xa0\\x80"); // half of a pair
}

TEST(Visible, LinesOfOursStay) { EXPECT_EQ(visibleLines("a\tb\n\x1b[0m\n"), "a\tb\n\\x1b[0m\n"); }

TEST(Visible, MessagesHaveNoLinesButTheirOwn) {
  Diagnostic diagnostic;
  diagnostic.file = "m\033.onnx";
  diagnostic.node = "a\nb\033[2J";
  diagnostic.text = "the value 'x\n' is open";
  diagnostic.note("operands: 'y\r'");
  EXPECT_EQ(renderText(diagnostic, false), "m\\x1b.onnx: node 'a\\nb\\x1b[2J': error: the value 'x\\n' is open\n"
                                           "  note: operands: 'y\\r'");
}

} // namespace
} // namespace dmxc::test
