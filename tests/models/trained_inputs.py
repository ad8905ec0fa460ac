"""What packages with trained weights are asked about: sounds, pictures, texts and files, all made here, from seeds."""

import io
import zlib

import numpy as np

RATE = 16000
# Formants of vowels in Hz, of a grown speaker, as textbooks of phonetics have them.
VOWELS = {
    "a": (730, 1090, 2440),
    "e": (530, 1840, 2480),
    "i": (270, 2290, 3010),
    "o": (570, 840, 2410),
    "u": (300, 870, 2240),
}
WIDTHS = (80, 100, 140)


def filtered(source, formants, rate):
    """A sound through resonators, by its spectrum."""
    spectrum = np.fft.rfft(source, 2 * source.size)
    z = np.exp(-2j * np.pi * np.fft.rfftfreq(2 * source.size, 1 / rate) / rate)
    for formant, width in zip(formants, WIDTHS):
        radius = np.exp(-np.pi * width / rate)
        spectrum = spectrum / (1 - 2 * radius * np.cos(2 * np.pi * formant / rate) * z + radius**2 * z**2)
    return np.fft.irfft(spectrum)[: source.size]


def syllable(random, pitch, rate):
    """A consonant's hiss, then a vowel that glides from one set of formants to the next over a pulse train of falling pitch."""
    length = int(rate * random.uniform(0.14, 0.28))
    first, second = (np.array(VOWELS[random.choice(list(VOWELS))]) for _ in range(2))
    contour = pitch * np.linspace(random.uniform(1.0, 1.15), random.uniform(0.85, 1.0), length) * (1 + 0.01 * random.standard_normal(length))
    phase = np.cumsum(contour / rate)
    pulses = np.diff(np.floor(phase), prepend=0.0) + 0.01 * random.standard_normal(length)
    mix = np.linspace(0, 1, length)
    vowel = (1 - mix) * filtered(pulses, first, rate) + mix * filtered(pulses, second, rate)
    vowel *= np.sin(np.pi * np.minimum(1, np.linspace(0, 1.15, length))) ** 0.5 / np.abs(vowel).max()
    hiss = random.standard_normal(int(rate * random.uniform(0.02, 0.07)))
    hiss = np.diff(hiss, prepend=0.0) * np.hanning(hiss.size) * random.uniform(0.03, 0.12)
    return np.concatenate([hiss, vowel])


def speech(seed, seconds=6.0, rate=RATE, noise=0.001):
    """Words of vowels and hisses between pauses, over faint noise."""
    random = np.random.default_rng(seed)
    out, pitch, at = noise * random.standard_normal(int(seconds * rate)), random.uniform(95, 220), random.uniform(0.3, 0.9)
    while at < seconds - 1.5:
        word = np.concatenate([syllable(random, pitch * random.uniform(0.9, 1.1), rate) for _ in range(random.integers(3, 8))])
        start = int(at * rate)
        word = word[: out.size - start]
        out[start : start + word.size] += random.uniform(0.25, 0.6) * word
        at += word.size / rate + random.choice([0.06, 0.5, 1.1])
    return np.clip(out, -1, 1).astype(np.float32)


def melody(seed, seconds=4.0, rate=22050):
    """Plucked tones with harmonics that decay, now and then as chords."""
    random = np.random.default_rng(seed)
    out, at = 1e-4 * random.standard_normal(int(seconds * rate)), 0.1
    while at < seconds - 0.6:
        length, root = random.choice([0.3, 0.45, 0.6]), int(random.integers(48, 77))
        for note in [root, root + 4, root + 7][: random.choice([1, 1, 2, 3])]:
            time = np.arange(int(length * rate)) / rate
            frequency = 440 * 2 ** ((note - 69) / 12)
            tone = sum(np.sin(2 * np.pi * frequency * k * time) / k**1.5 for k in range(1, 7) if frequency * k < rate / 2)
            tone *= np.exp(-3 * time) * np.minimum(1, time / 0.005) * np.minimum(1, (length - time) / 0.02)
            start = int(at * rate)
            out[start : start + tone.size] += 0.2 * random.uniform(0.6, 1) * tone[: out.size - start]
        at += length + random.choice([0.0, 0.15])
    return np.clip(out, -1, 1).astype(np.float32)


def wave(samples, rate):
    """A file of 16-bit samples."""
    import wave as format

    file = io.BytesIO()
    with format.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(rate)
        writer.writeframes((samples * 32767).astype("<i2").tobytes())
    return file.getvalue()


WORDS = """river stone window garden letter silver market bridge winter engine copper signal harbor forest number castle
planet mirror violin basket thunder village lantern compass meadow station orchard pepper velvet walnut""".split()


def page(seed):
    """A sheet with three lines of words and numbers in black on white, or the other way round, of several sizes."""
    from PIL import Image, ImageDraw, ImageFont

    random = np.random.default_rng(seed)
    dark = bool(seed % 3 == 0)
    image = Image.new("RGB", (420, 190), (25, 30, 40) if dark else (250, 248, 240))
    draw, top = ImageDraw.Draw(image), 14
    for _ in range(3):
        text = " ".join([*random.choice(WORDS, 2), str(random.integers(10, 9999))])
        size = int(random.integers(20, 32))
        draw.text((int(random.integers(8, 40)), top), text, (235, 235, 230) if dark else (20, 20, 30), ImageFont.load_default(size))
        top += size + int(random.integers(14, 24))
    return np.asarray(image)


def captcha(seed, letters="23456789ABCDEFGHJKLMNPQRSTUVWXYZ", count=4, size=(160, 60)):
    """Turned letters of several colours, and lines across them; a PNG."""
    from PIL import Image, ImageDraw, ImageFont

    random = np.random.default_rng(seed)
    image = Image.new("RGB", size, tuple(int(value) for value in random.integers(225, 256, 3)))
    draw = ImageDraw.Draw(image)
    for _ in range(3):
        ends = random.integers(0, size, (2, 2))
        draw.line([tuple(map(int, end)) for end in ends], tuple(map(int, random.integers(120, 200, 3))), 1)
    for at, letter in enumerate(random.choice(list(letters), count)):
        sheet = Image.new("RGBA", (44, 52), (0, 0, 0, 0))
        ink = tuple(map(int, random.integers(0, 110, 3)))
        ImageDraw.Draw(sheet).text((8, 4), letter, (*ink, 255), ImageFont.load_default(int(random.integers(30, 37))))
        sheet = sheet.rotate(float(random.uniform(-18, 18)))
        image.paste(sheet, (4 + at * (size[0] - 16) // count, int(random.integers(0, 9))), sheet)
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


SENTENCES = [
    "The cat sleeps on the warm windowsill all afternoon.",
    "A kitten is napping in the sun beside the window.",
    "My dog chases every ball that I throw in the park.",
    "The puppy ran after the stick and brought it back.",
    "Bread needs flour, water, yeast and a little salt.",
    "Knead the dough for ten minutes and let it rise.",
    "The soup tastes better with fresh basil and garlic.",
    "He burned the onions while he was stirring the sauce.",
    "The train to the coast leaves at half past seven.",
    "Our flight was delayed by three hours because of fog.",
    "She bought a ticket for the night bus to the capital.",
    "Traffic on the motorway came to a stop after the accident.",
    "The compiler reports an error in the third line of the program.",
    "This function returns the wrong result when the list is empty.",
    "Restart the server after you have changed its configuration.",
    "The database lost the last transactions when the disk failed.",
    "It will rain in the north and stay dry in the south tomorrow.",
    "A storm with strong winds is expected over the weekend.",
    "The summer was so hot that the river almost dried up.",
    "Snow covered the roofs of the village this morning.",
    "The orchestra played a symphony that nobody had heard before.",
    "She practises the violin for two hours every evening.",
    "The bank raised its interest rates for the second time this year.",
    "Shares fell sharply after the company published its results.",
]
ARABIC = """ذهب الولد إلى المدرسة في الصباح
كتب الطالب الدرس في الدفتر
البيت قريب من السوق
أكل الرجل الخبز مع الجبن
قرأت كتابا جديدا عن البحر
سافرت العائلة إلى القرية
الشمس تشرق من الشرق
المعلم يشرح الدرس للطلاب
نام الطفل بعد العشاء
شربت القهوة مع صديقي
السماء صافية والجو جميل
يعمل المهندس في شركة كبيرة
لعب الأولاد الكرة في الحديقة
فتحت النافذة لأن الغرفة حارة
اشترى أبي سيارة حمراء
تكتب البنت رسالة إلى جدتها
وصل القطار إلى المحطة متأخرا
القمر يضيء الليل
زرعنا شجرة أمام البيت
يحب أخي السباحة في النهر
طبخت أمي طعاما لذيذا
جلس القاضي في المحكمة
سمعنا صوت المطر فوق السقف
العلم نور والجهل ظلام""".split("\n")


def png(seed):
    """A picture without a library that draws: chunks by hand."""
    random = np.random.default_rng(seed)
    rows = b"".join(b"\0" + random.integers(0, 256, 96, np.uint8).tobytes() for _ in range(32))

    def chunk(kind, data):
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    head = (32).to_bytes(4, "big") * 2 + bytes([8, 2, 0, 0, 0])
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
