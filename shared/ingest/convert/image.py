"""Pictures: scans, photographs and faxes, read page by page by text recognition."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator

from PIL import Image, ImageOps, ImageSequence, UnidentifiedImageError

from shared.errors import LimitExceededError, UnreadableFileError, UnsupportedFileError
from shared.ingest.convert.blocks import TextBuilder
from shared.ingest.convert.formats import Conversion
from shared.ingest.convert.ocr import NotReadError, PageReader, Reading

# A scan of A2 at 600 dpi; what claims more is a bomb, and is refused before a pixel of it is unpacked.
_MAX_CLAIMED_PIXELS = 140_000_000
_MAX_FRAMES = 10_000
# Letters on a screen are half as high as those of a scan, and are read better when they are enlarged.
_SMALL_SIDE = 1400
_READ = ("PNG", "JPEG", "TIFF", "WEBP", "BMP", "GIF")


class _DamagedError(NotReadError):
    """A frame cannot be decoded."""


def convert(content: bytes, reader: PageReader | None = None) -> Conversion:
    """Return the text of a picture, a page for each frame of a TIFF. Without any text it is a picture and no error."""
    if reader is None:
        raise UnsupportedFileError("the file is a picture, and no text recognition is installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _converted(content, reader)


def _converted(content: bytes, reader: PageReader) -> Conversion:
    builder = TextBuilder()
    read: dict[int, Reading] = {}
    blank: list[int] = []
    damaged: list[int] = []
    unread: list[int] = []
    reasons: dict[str, int] = {}
    count = 0
    with _opened(content) as picture:
        size, kind = list(picture.size), picture.format
        for count, frame in enumerate(_frames(picture), start=1):
            builder.page(count)
            try:
                reading = reader.read(lambda frame=frame: _upright(frame))  # type: ignore[misc]
            except _DamagedError as error:
                damaged.append(count)
                reasons[str(error)] = reasons.get(str(error), 0) + 1
                continue
            except NotReadError as error:
                unread.append(count)
                reasons[str(error)] = reasons.get(str(error), 0) + 1
                continue
            if reading.text:
                read[count] = reading
                builder.add(reading.text)
            else:
                blank.append(count)
    if builder.is_empty and damaged:
        raise UnreadableFileError("; ".join(reasons))
    if builder.is_empty and unread:
        raise UnsupportedFileError(f"no text could be read from the picture: {'; '.join(reasons)}")
    meta = {
        "page_count": count,
        "picture": {"format": kind, "size": size},
        "ocr_pages": sorted(read),
        "blank_pages": blank,
        "damaged_pages": damaged,
        "unread_pages": unread,
        **({"unread_reasons": reasons} if reasons else {}),
        **(reader.account(read) if read else {}),
        **({"no_text": True} if builder.is_empty else {}),
    }
    return Conversion(builder.build(meta=meta))


def _opened(content: bytes) -> Image.Image:
    # Checked by ourselves, frame by frame: the library's own limit only warns up to twice its value.
    Image.MAX_IMAGE_PIXELS = None
    try:
        return Image.open(io.BytesIO(content), formats=_READ)
    except UnidentifiedImageError as error:
        raise UnreadableFileError("the picture is broken: its beginning cannot be decoded") from error
    except (OSError, ValueError, SyntaxError, EOFError, TypeError) as error:
        raise UnreadableFileError(f"the picture is broken: {error}"[:300]) from error


def _frames(picture: Image.Image) -> Iterator[Image.Image]:
    """Yield the pages of a TIFF; of an animation or a stereo photograph only the first picture."""
    if picture.format != "TIFF":
        yield picture
        return
    for position, frame in enumerate(ImageSequence.Iterator(picture)):
        if position >= _MAX_FRAMES:
            raise LimitExceededError(f"the picture has more than {_MAX_FRAMES} pages")
        yield frame


def _upright(frame: Image.Image) -> Image.Image:
    """Return the frame in grey on white, as its camera says it should be turned, large enough to be read."""
    width, height = frame.size
    if width * height > _MAX_CLAIMED_PIXELS:
        raise LimitExceededError(f"the picture has {width} x {height} pixels; {_MAX_CLAIMED_PIXELS} are allowed")
    try:
        turned = ImageOps.exif_transpose(frame)
    except (OSError, ValueError, SyntaxError, EOFError) as error:
        raise _DamagedError(f"the picture is damaged: {error}"[:200]) from error
    if turned.has_transparency_data:
        clear = turned.convert("RGBA")
        turned = Image.new("RGBA", clear.size, "white")
        turned.alpha_composite(clear)
    grey = turned.convert("L")
    side = max(grey.size)
    return grey.resize((grey.width * 2, grey.height * 2), Image.Resampling.LANCZOS) if side < _SMALL_SIDE else grey
