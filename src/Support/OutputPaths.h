//===- OutputPaths.h - names and folders of output that is made -*- C++ -*-===//
//
// What OutputFile and OutputFolder have of the file system.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Support/OutputFile.h"

namespace dmxc {

/// A name that nobody has; its length does not depend on what is written.
std::string newTemporaryName();
Error cannotWrite(const std::string &path, int reason);
/// Path of the folder that `path` lies in and its last part.
std::pair<std::string, std::string> splitPath(const std::string &path);
/// The path that a symbolic link stands for, so that output replaces what it points to and not the link; there may be
/// nothing yet. What stands in for an open file (/dev/stdout) stays as it is.
std::string followLinks(std::string path);
/// The folder that `path` lies in.
Result<Descriptor> openFolderOf(const std::string &path);
/// Removes a file, or a folder with all it holds. What cannot be opened is tried once more: nobody looks here again
/// until something else is written.
void removeTree(int folder, const char *name);
/// Takes the lock that says that a temporary is being written, and that it is there at all: a sweep may have been
/// faster. A file system without locks leaves nothing to sweep by, so there that is no failure.
bool lockTemporary(int folder, const std::string &name, int fd);
/// Removes temporaries whose writers are dead.
void sweep(int folder);
/// Waits until what the descriptor stands for is on the disk. Some file systems and devices cannot say.
int synchronise(int fd);

} // namespace dmxc
