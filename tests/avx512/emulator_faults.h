#pragma once

/* Has this process run rightly, in code of a library that it has loaded, the instructions that Bochs 2.7 does not. */
void repairEmulator(const char* library);
