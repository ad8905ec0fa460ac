#!/usr/bin/python3
"""dmx-sign and what understands its signatures: exit codes, messages, files. Standard library only; signatures are checked, and
made again, by an Ed25519 of its own (RFC 8032, section 6).

    sign_test.py --bin DIR --golden BUNDLE --source DIR CASE
"""
import argparse
import ctypes
import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import zipfile

OPTIONS = None


# ---- Ed25519, as RFC 8032 writes it down -------------------------------------------------------------------------------
P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT = pow(2, (P - 1) // 4, P)


def add(a, b):
    e, f = (a[1] - a[0]) * (b[1] - b[0]) % P, (a[1] + a[0]) * (b[1] + b[0]) % P
    g, h = 2 * a[3] * b[3] * D % P, 2 * a[2] * b[2] % P
    e, f, g, h = f - e, h - g, h + g, f + e
    return e * f % P, g * h % P, f * g % P, e * h % P


def times(scalar, point):
    result = (0, 1, 1, 0)
    while scalar:
        if scalar & 1:
            result = add(result, point)
        point = add(point, point)
        scalar >>= 1
    return result


def x_of(y, sign):
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * ROOT % P
    assert (x * x - square) % P == 0, "not a point"
    return P - x if x & 1 != sign else x


BASE_Y = 4 * pow(5, P - 2, P) % P
BASE = (x_of(BASE_Y, 0), BASE_Y, 1, x_of(BASE_Y, 0) * BASE_Y % P)


def packed(point):
    inverse = pow(point[2], P - 2, P)
    return (point[1] * inverse % P | (point[0] * inverse % P & 1) << 255).to_bytes(32, "little")


def unpacked(data):
    y = int.from_bytes(data, "little")
    x = x_of(y & 2**255 - 1, y >> 255)
    return x, y & 2**255 - 1, 1, x * (y & 2**255 - 1) % P


def number(data):
    return int.from_bytes(hashlib.sha512(data).digest(), "little") % ORDER


def ed25519_sign(seed, message):
    """Public key and signature."""
    wide = hashlib.sha512(seed).digest()
    scalar = int.from_bytes(wide[:32], "little") & 2**254 - 8 | 2**254
    key = packed(times(scalar, BASE))
    nonce = number(wide[32:] + message)
    point = packed(times(nonce, BASE))
    return key, point + ((nonce + number(point + key + message) * scalar) % ORDER).to_bytes(32, "little")


def ed25519_verify(key, message, signature):
    left = times(int.from_bytes(signature[32:], "little"), BASE)
    right = add(unpacked(signature[:32]), times(number(signature[:32] + key + message), unpacked(key)))
    return packed(left) == packed(right)


# ---- Helpers -----------------------------------------------------------------------------------------------------------
def run(tool, *arguments, code=0, out=(), err=()):
    """Runs a tool; checks its exit code and the texts that must be on stdout and stderr."""
    command = [os.path.join(OPTIONS.bin, tool), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    what = f"{' '.join(command)}\nexit {done.returncode}\n--- stdout\n{done.stdout}--- stderr\n{done.stderr}"
    assert done.returncode == code, f"expected exit {code}:\n{what}"
    for texts, stream in ((out, done.stdout), (err, done.stderr)):
        for text in texts:
            assert text in stream, f"{text!r} is missing:\n{what}"
    return done.stdout + done.stderr


def read(path, mode="rb"):
    with open(path, mode) as file:
        return file.read()


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)


def signature_of(path):
    if os.path.isdir(path):
        return read(path + "/manifest.sig")
    with zipfile.ZipFile(path) as archive:
        return archive.read("manifest.sig")


def unpack(archive, folder):
    """The directory form of a bundle file."""
    with zipfile.ZipFile(archive) as file:
        file.extractall(folder)
        write(folder + "/manifest.sha256", file.comment.removeprefix(b"dmx-manifest-sha256:") + b"\n")


class Scratch(tempfile.TemporaryDirectory):
    """A directory with the golden bundle as m.bundle and as directory m, and the keys a.key and b.key."""

    def __enter__(self):
        path = super().__enter__()
        shutil.copy(OPTIONS.golden, path + "/m.bundle")
        unpack(OPTIONS.golden, path + "/m")
        for key in "ab":
            run("dmx-sign", "keygen", f"{path}/{key}.key")
        return path


# ---- Cases -------------------------------------------------------------------------------------------------------------
def case_keys():
    with tempfile.TemporaryDirectory() as path:
        key = path + "/k"
        said = run("dmx-sign", "keygen", key, out=["secret key", "public key"])
        secret, public = read(key, "r").split("\n"), read(key + ".pub", "r").split("\n")
        assert secret[0] == "dmx-secret-key 1" and public[0] == "dmx-public-key 1" and secret[1] == public[1], (secret, public)
        seed = secret[2].removeprefix("seed ")
        assert len(seed) == 64 and seed not in said and seed not in "\n".join(public), "the secret was printed"
        assert public[1].removeprefix("key ") in said
        assert stat.S_IMODE(os.stat(key).st_mode) == 0o600, oct(os.stat(key).st_mode)
        assert stat.S_IMODE(os.stat(key + ".pub").st_mode) & 0o444, oct(os.stat(key + ".pub").st_mode)
        assert ed25519_sign(bytes.fromhex(seed), b"")[0].hex() == public[1].removeprefix("key ")
        assert sorted(os.listdir(path)) == ["k", "k.pub"]

        before = read(key)
        run("dmx-sign", "keygen", key, code=3, err=["exists", "--force"])
        os.rename(key, path + "/other")
        run("dmx-sign", "keygen", key, code=3, err=["k.pub' exists"])
        os.rename(path + "/other", key)
        assert read(key) == before
        run("dmx-sign", "keygen", key, "--force")
        assert read(key) != before, "two keys are the same"
        run("dmx-sign", "keygen", path + "/none/k", code=3, err=["No such file"])

        shutil.copy(OPTIONS.golden, path + "/m.bundle")
        for mode in (0o640, 0o604, 0o620, 0o644):
            os.chmod(key, mode)
            said = run("dmx-sign", "sign", path + "/m.bundle", "--key", key, code=3, err=["others than its owner", "chmod 600"])
        os.chmod(key, 0o600)
        run("dmx-sign", "sign", path + "/m.bundle", "--key", key + ".pub", code=3, err=["others than its owner"])
        os.chmod(key + ".pub", 0o600)
        run("dmx-sign", "sign", path + "/m.bundle", "--key", key + ".pub", code=3, err=["is a public key"])
        run("dmx-sign", "verify", path + "/m.bundle", "--trusted-key", key, code=3, err=["is a secret key"])
        good, public = read(key), read(key + ".pub")
        # As editors and mail leave a file: lines that end with CRLF, empty ones at the end, none at all there.
        for left in (lambda text: text.replace(b"\n", b"\r\n"), lambda text: text + b"\n", lambda text: text + b"\r\n\n",
                     lambda text: text[:-1], lambda text: text.replace(b"\n", b"\r\n") + b"\r\n"):
            write(key, left(good))
            write(key + ".pub", left(public))
            shutil.copy(OPTIONS.golden, path + "/edited.bundle")
            run("dmx-sign", "sign", path + "/edited.bundle", "--key", key, out=["signed by key"])
            run("dmx-sign", "verify", path + "/edited.bundle", "--trusted-key", key + ".pub", out=["every byte"])
            run("dmx-run", path + "/edited.bundle", "--random-inputs", "1", "--trusted-key", key + ".pub")
        for bad in (b"\n" + public, public + b"x", public.replace(b"\nkey", b"\n\nkey"), public.replace(b"\n", b"\r"), public + b"\n x\n"):
            write(key + ".pub", bad)
            run("dmx-sign", "verify", path + "/edited.bundle", "--trusted-key", key + ".pub", code=3, err=["is not a public key"])
        for bad in (good[:-2], good + b"x", b"", good.replace(b"seed", b"sead"), good[:-3] + b"G" + good[-2:]):
            write(key, bad)
            said = run("dmx-sign", "sign", path + "/m.bundle", "--key", key, code=3, err=["is not a secret key"])
            assert good.decode().split()[-1][:20] not in said, "the secret was printed"
        lines = good.split(b"\n")
        write(key, b"\n".join([lines[0], b"key " + b"0" * 64, *lines[2:]]))
        run("dmx-sign", "sign", path + "/m.bundle", "--key", key, code=3, err=["is not that of its seed"])
        write(key + ".pub", b"dmx-public-key 2\n")
        run("dmx-sign", "verify", path + "/m.bundle", "--trusted-key", key + ".pub", code=3, err=["is not a public key"])
        assert read(path + "/m.bundle") == read(OPTIONS.golden)


def case_usage():
    run("dmx-sign", "--help", out=["Usage:", "Examples:", "--trusted-key KEY.pub", "--detached FILE"])
    run("dmx-sign", "--version", out=["dmx-sign 0."])
    run("dmx-sign", code=2)
    run("dmx-sign", "sing", "x", code=2, err=["unknown command 'sing' (did you mean 'sign'?)"])
    run("dmx-sign", "sign", OPTIONS.golden, code=2, err=["needs --key"])
    run("dmx-sign", "verify", OPTIONS.golden, code=2, err=["needs --trusted-key"])
    run("dmx-sign", "keygen", "x", "--key", "y", code=2, err=["keygen has no flag --key"])
    run("dmx-sign", "verify", OPTIONS.golden, "--trusted-key", "x", "--force", code=2, err=["verify has no flag --force"])
    run("dmx-sign", "sign", OPTIONS.golden, "--key", "x", "--signature", "y", code=2, err=["sign has no flag --signature"])
    run("dmx-sign", "sign", OPTIONS.golden, "--keys", "x", code=2, err=["did you mean '--key'?"])
    run("dmx-sign", "sign", OPTIONS.golden, "--key", "/nonexistent", code=3, err=["/nonexistent"])
    run("dmx-run", OPTIONS.golden, "--random-inputs", "1", "--signature", "x", code=2, err=["--signature", "--trusted-key"])


def case_sign():
    with Scratch() as path:
        key, trusted = path + "/a.key", path + "/a.key.pub"
        os.chmod(path + "/m.bundle", 0o640)
        for bundle in (path + "/m.bundle", path + "/m"):
            with zipfile.ZipFile(OPTIONS.golden) as golden:
                manifest = golden.read("manifest.json")
                names = golden.namelist()
            run("dmx-sign", "verify", bundle, "--trusted-key", trusted, code=5, err=["the bundle is not signed"])
            run("dmx-sign", "sign", bundle, "--key", key, out=["signed by key"])
            run("dmx-sign", "verify", bundle, "--trusted-key", trusted, out=["every byte"])
            run("dmx-sign", "verify", bundle, "--trusted-key", path + "/b.key.pub", "--trusted-key", trusted)
            text = signature_of(bundle)
            # By the format's text, and by arithmetic that shares nothing with the tool's.
            head, value = text.split(b"signature ")[0], bytes.fromhex(text.decode().split()[-1])
            public, seed = (bytes.fromhex(line.split()[1]) for line in read(key, "r").splitlines()[1:])
            head, _, value = text.rpartition(b"signature ")
            assert head == (f"dmx-bundle-signature 1\nmanifest-sha256 {hashlib.sha256(manifest).hexdigest()}\n"
                            f"key {public.hex()}\n").encode(), head
            value = bytes.fromhex(value.decode().strip())
            assert ed25519_verify(public, head, value) and not ed25519_verify(public, head + b" ", value)
            assert ed25519_sign(seed, head) == (public, value), "another signature than RFC 8032's"
            run("dmx-sign", "sign", bundle, "--key", key)
            assert signature_of(bundle) == text, "signing twice gave other bytes"
            run("dmx-inspect", bundle, "--verify", out=["no problems"])
            run("dmx-inspect", bundle, out=["signed by (unchecked)", "key " + public.hex()])
            facts = json.loads(run("dmx-inspect", bundle, "--json"))
            assert facts["signed by (unchecked)"] == "key " + public.hex(), facts
            run("dmx-inspect", bundle, "--diff", OPTIONS.golden, code=5, out=["manifest.sig", public.hex()])
        assert json.loads(run("dmx-inspect", OPTIONS.golden, "--json"))["signed by (unchecked)"] == "nobody"
        with zipfile.ZipFile(path + "/m.bundle") as archive:
            assert archive.testzip() is None and archive.namelist() == names + ["manifest.sig"]
            golden = read(OPTIONS.golden)
            end = max(i.header_offset for i in archive.infolist())
            assert read(path + "/m.bundle")[:end] == golden[:end], "entries moved"
        assert stat.S_IMODE(os.stat(path + "/m.bundle").st_mode) == 0o640
        # The detached one is the same text, and the bundle stays.
        run("dmx-sign", "sign", OPTIONS.golden, "--key", key, "--detached", path + "/m.sig", out=["signature in"])
        assert read(path + "/m.sig") == text
        run("dmx-sign", "verify", OPTIONS.golden, "--trusted-key", trusted, "--signature", path + "/m.sig")
        # Through a link.
        os.symlink("m.bundle", path + "/link")
        run("dmx-sign", "sign", path + "/link", "--key", key)
        assert os.path.islink(path + "/link")
        # Somebody else's signature is not replaced by accident.
        run("dmx-sign", "sign", path + "/m.bundle", "--key", path + "/b.key", code=2, err=["is signed by key", "--force"])
        run("dmx-sign", "sign", path + "/m.bundle", "--key", path + "/b.key", "--force")
        run("dmx-sign", "verify", path + "/m.bundle", "--trusted-key", trusted, code=5, err=["which is not the trusted key"])
        assert not [name for name in os.listdir(path) + os.listdir(path + "/m") if "tmp" in name]
        # What is damaged is not signed.
        damaged = bytearray(read(OPTIONS.golden))
        damaged[-2000] ^= 1
        write(path + "/damaged", damaged)
        run("dmx-sign", "sign", path + "/damaged", "--key", key, code=1, err=["damaged"])
        assert read(path + "/damaged") == damaged
        run("dmx-sign", "sign", path + "/none", "--key", key, code=3, err=["none"])
        run("dmx-sign", "sign", OPTIONS.golden, "--key", key, "--detached", path + "/none/x", code=3, err=["cannot write"])


def case_refuse():
    """Each way to tamper, in both forms, with its text; dmx-run refuses what dmx-sign verify does."""
    with Scratch() as path:
        key, trusted = path + "/a.key", path + "/a.key.pub"
        run("dmx-sign", "sign", path + "/m", "--key", key)
        run("dmx-sign", "sign", path + "/m.bundle", "--key", key)
        good = signature_of(path + "/m")

        untrusted = {"not signed", "not the trusted key", "forged or changed", "is truncated", "of another bundle"}

        def refused(what, bundle=path + "/m"):
            run("dmx-sign", "verify", bundle, "--trusted-key", trusted, code=5, err=[what])
            if what != "was added":  # which nothing reads
                run("dmx-run", bundle, "--random-inputs", "1", "--trusted-key", trusted, code=5 if what in untrusted else 1, err=[what])

        def with_file(name, data, what):
            name = path + "/m/" + name
            before = read(name) if os.path.exists(name) else None
            os.remove(name) if data is None else write(name, data)
            refused(what)
            os.remove(name) if before is None else write(name, before)

        run("dmx-run", path + "/m", "--random-inputs", "1", "--trusted-key", trusted)
        run("dmx-run", path + "/m.bundle", "--random-inputs", "1", "--trusted-key", trusted)
        run("dmx-run", "--random-inputs", "1", "--trusted-key", trusted, path + "/m.bundle")
        run("dmx-sign", "verify", "--trusted-key", trusted, path + "/m.bundle")
        run("dmx-run", OPTIONS.golden, "--random-inputs", "1", "--trusted-key", trusted, code=5, err=["not signed"])
        with_file("manifest.sig", None, "not signed")
        flipped = bytearray(good)
        flipped[-5] = ord("0") if flipped[-5] != ord("0") else ord("1")
        with_file("manifest.sig", bytes(flipped), "forged or changed")
        with_file("manifest.sig", good[:200], "is truncated")
        with_file("manifest.sig", good.replace(b"signature 1\n", b"signature 2\n"), "has version 2")
        with_file("extra.so", b"code", "was added")
        for name in ("graph.json", "weights/model.safetensors", "code/cpu/x86-64-v2/kernels.so", "tests/in_x.npy"):
            data = bytearray(read(f"{path}/m/{name}"))
            data[len(data) // 2] ^= 4
            with_file(name, bytes(data), f"entry '{name}' does not have its recorded sha256")
        # A stranger compiles it again, with the checksums right, and signs.
        manifest = read(path + "/m/manifest.json").replace(b"dmxc", b"evil")
        other = path + "/other"
        shutil.copytree(path + "/m", other)
        write(other + "/manifest.json", manifest)
        refused("does not have its recorded sha256", bundle=other)
        write(other + "/manifest.sha256", hashlib.sha256(manifest).hexdigest().encode() + b"\n")
        refused("of another bundle", bundle=other)
        os.remove(other + "/manifest.sig")
        run("dmx-sign", "sign", other, "--key", path + "/b.key")
        refused("not the trusted key", bundle=other)
        # Two bundles of the same signer.
        os.remove(other + "/manifest.sig")
        run("dmx-sign", "sign", other, "--key", key)
        run("dmx-sign", "verify", other, "--trusted-key", trusted)
        shutil.copy(other + "/manifest.sig", path + "/swap")
        with_file("manifest.sig", read(path + "/swap"), "of another bundle")
        # Detached, wrongly.
        write(path + "/m.sig", good)
        run("dmx-run", OPTIONS.golden, "--random-inputs", "1", "--trusted-key", trusted, "--signature", path + "/m.sig")
        run("dmx-run", OPTIONS.golden, "--random-inputs", "1", "--trusted-key", path + "/b.key.pub", "--signature", path + "/m.sig", code=5,
            err=["not the trusted key"])
        run("dmx-run", OPTIONS.golden, "--random-inputs", "1", "--trusted-key", trusted, "--signature", path + "/none", code=3, err=["none"])
        run("dmx-run", OPTIONS.golden, "--random-inputs", "1", "--trusted-key", path + "/none", code=3, err=["none"])
        write(path + "/empty", b"")
        run("dmx-run", OPTIONS.golden, "--random-inputs", "1", "--trusted-key", trusted, "--signature", path + "/empty", code=5,
            err=["is truncated"])


def case_python():
    """The runtime from Python."""
    sys.path.insert(0, OPTIONS.source + "/tools/python")
    import dmxrt
    library = OPTIONS.library
    with Scratch() as path:
        key = dmxrt.read_public_key(path + "/a.key.pub")
        write(path + "/edited.pub", read(path + "/a.key.pub").replace(b"\n", b"\r\n") + b"\r\n")
        assert dmxrt.read_public_key(path + "/edited.pub") == key
        run("dmx-sign", "sign", path + "/m.bundle", "--key", path + "/a.key", )
        run("dmx-sign", "sign", path + "/m", "--key", path + "/a.key", "--detached", path + "/m.sig")
        with dmxrt.Session(path + "/m.bundle", trusted_keys=[key], library=library) as session:
            assert [tensor.name for tensor in session.inputs] == ["x"]
        with dmxrt.Session(path + "/m", trusted_keys=[key], signature=read(path + "/m.sig"), library=library):
            pass

        def refused(status, bundle, **arguments):
            try:
                dmxrt.Session(bundle, library=library, **arguments)
            except dmxrt.Error as error:
                assert error.status == status, error
            else:
                raise AssertionError(f"{bundle} was opened with {arguments}")

        other = dmxrt.read_public_key(path + "/b.key.pub")
        refused(dmxrt.UNTRUSTED, path + "/m.bundle", trusted_keys=[other])
        refused(dmxrt.UNTRUSTED, path + "/m", trusted_keys=[key])
        refused(1, path + "/m.bundle", trusted_keys=[])
        refused(0, path + "/m.bundle", trusted_keys=[key[:31]])
        refused(1, path + "/m", signature=read(path + "/m.sig"))


def main():
    global OPTIONS
    cases = {name[5:]: case for name, case in globals().items() if name.startswith("case_")}
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--golden", required=True)
    parser.add_argument("--source", required=True)
    parser.add_argument("--library", required=True)
    parser.add_argument("case", choices=cases)
    OPTIONS = parser.parse_args()
    cases[OPTIONS.case]()


if __name__ == "__main__":
    main()
