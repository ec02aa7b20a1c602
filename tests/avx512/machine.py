"""A computer with AVX-512, emulated by Bochs: a Debian kernel, a few libraries and what it is to run, on a boot CD.

The emulator computes every instruction in software (its processor model is a Skylake-X), at some 30 million a second.
"""

import os
import pathlib
import pty
import select
import shutil
import subprocess
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent

# The emulator gives the size of the full save area where the compacted one is asked for, whereupon Linux would turn
# AVX off: clearcpuid takes XSAVEC and XSAVES (321, 323) away.
KERNEL_ARGUMENTS = "console=ttyS0,115200 quiet nosmp mitigations=off tsc=reliable clearcpuid=321,323 lsm="
BOOT = f"DEFAULT linux\nLABEL linux\nKERNEL vmlinuz\nINITRD initrd\nAPPEND {KERNEL_ARGUMENTS}\n"
CONFIGURATION = """\
config_interface: textconfig
display_library: term
plugin_ctrl: speaker=0
memory: guest=1024, host=1024
romimage: file=/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=/usr/share/vgabios/vgabios.bin
cpu: model=corei7_skylake_x, count=1, ips=50000000, reset_on_triple_fault=0
clock: sync=none
ata0-master: type=cdrom, path=boot.iso, status=inserted
boot: cdrom
com1: enabled=1, mode=file, dev=console.txt
parport1: enabled=1, file=results
log: bochs.log
panic: action=fatal
error: action=ignore
info: action=ignore
"""


def build_guest(build, root):
    """The program that runs the cases, its run time, and every library that they load, under the folder `root`."""
    (root / "bin").mkdir(parents=True)
    (root / "proc").mkdir()
    (root / "dev").mkdir()
    shutil.copy(HERE / "init", root / "init")
    shutil.copy("/bin/busybox", root / "bin" / "busybox")
    command = ["cc", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-o", root / "guest"]
    command += [HERE / "guest.c", HERE / "emulator_faults.c"]
    command += ["-I", ROOT / "include", "-L", build, "-l:libbevel_runtime.so", "-Wl,-rpath,/lib"]
    subprocess.run(command, check=True)
    (root / "lib").mkdir()
    subprocess.run(
        ["strip", "-o", root / "lib" / "libbevel_runtime.so", build / "libbevel_runtime.so"], check=True
    )
    listed = subprocess.run(
        ["ldd", build / "libbevel_runtime.so"], check=True, capture_output=True, text=True
    )
    for word in listed.stdout.split():
        if word.startswith("/"):
            target = root / word[1:]
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(word, target)


def build_disc(folder, kernel, root):
    """folder/boot.iso: boots `kernel` with the tree `root` as its file system in memory."""
    disc = folder / "disc"
    shutil.rmtree(disc, ignore_errors=True)
    disc.mkdir(parents=True)
    shutil.copy("/usr/lib/ISOLINUX/isolinux.bin", disc)
    shutil.copy("/usr/lib/syslinux/modules/bios/ldlinux.c32", disc)
    shutil.copy(kernel, disc / "vmlinuz")
    (disc / "isolinux.cfg").write_text(BOOT)
    names = "".join(f"{path.relative_to(root)}\n" for path in sorted(root.rglob("*")))
    with open(disc / "initrd", "wb") as archive:
        command = ["busybox", "cpio", "-o", "-H", "newc"]
        subprocess.run(
            command, cwd=root, input=names.encode(), stdout=archive, stderr=subprocess.DEVNULL, check=True
        )
    command = (
        "xorriso -as mkisofs -quiet -o boot.iso -b isolinux.bin -c boot.cat -no-emul-boot -boot-load-size 4"
    )
    subprocess.run(
        [*command.split(), "-boot-info-table", "disc"], cwd=folder, check=True, stderr=subprocess.DEVNULL
    )


def run(folder, limit, progress):
    """Runs the machine that folder/boot.iso boots; gives what it sent, whether or not it came to its end.
    `progress` is called now and then with what has come so far."""
    results = folder / "results"
    for name in ("results", "console.txt", "bochs.log"):
        (folder / name).unlink(missing_ok=True)
    (folder / "bochsrc").write_text(CONFIGURATION)
    (folder / "commands").write_text("c\n")  # Debian's Bochs starts in its debugger: continue
    master, slave = pty.openpty()  # its screen wants a terminal
    process = subprocess.Popen(
        ["bochs", "-q", "-f", "bochsrc", "-rc", "commands"],
        cwd=folder,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=os.environ | {"TERM": "vt100"},
        start_new_session=True,
    )
    os.close(slave)
    end = time.monotonic() + limit
    shown = time.monotonic()
    try:
        while process.poll() is None and time.monotonic() < end:
            if select.select([master], [], [], 1)[0]:
                try:
                    os.read(master, 1 << 16)
                except OSError:  # the other side is closed
                    process.wait(timeout=10)
            if time.monotonic() - shown > 30:
                shown = time.monotonic()
                progress(results.read_bytes() if results.exists() else b"")
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        os.close(master)
    return results.read_bytes() if results.exists() else b""
