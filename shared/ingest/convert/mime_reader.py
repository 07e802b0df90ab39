"""The parts of a mail sorted into what was written and what hangs on it, each once."""

from __future__ import annotations

from shared.errors import EncryptedFileError, LimitExceededError, PermanentError
from shared.ingest.convert import html, mail, tnef
from shared.ingest.convert.endings import ending_of
from shared.ingest.convert.formats import Member
from shared.ingest.convert.mime import (
    MAX_DEPTH,
    Part,
    bytes_of,
    content_of,
    entity,
    file_name,
    header,
    is_attached,
    parse,
    parts_of,
    text_of,
)
from shared.ingest.convert.signed_data import unwrap

_DETACHED = frozenset({"application/pkcs7-signature", "application/x-pkcs7-signature", "application/pgp-signature"})
_OPAQUE = frozenset({"application/pkcs7-mime", "application/x-pkcs7-mime"})
_TNEF = frozenset({"application/ms-tnef", "application/vnd.ms-tnef"})
_REPORTS = frozenset({"message/delivery-status", "message/disposition-notification"})
_MAIL = "message/rfc822"
# A signature with another name is somebody's file: the one of a document beside it.
_SIGNATURE_NAMES = frozenset({None, "smime.p7s", "signature.asc"})
_SMIME, _WINMAIL = "smime.p7m", "winmail.dat"
_SMIME_NAMES = frozenset({None, _SMIME, "smime.p7z"})


class MimeReader:
    """Collects texts and members of a mail. Signatures are noted, and what they sign is read."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.members: list[Member] = []
        self.is_signed = False

    def read(self, part: Part, *, depth: int = 0) -> None:
        """Sort a part and all that is in it."""
        if depth > MAX_DEPTH:
            raise LimitExceededError(f"the mail's parts are nested more than {MAX_DEPTH} deep")
        kind, name = part.get_content_type(), (file_name(part) or "").lower()
        if (kind in _OPAQUE or name == _SMIME) and self._unwrapped(part, depth):
            return
        if (kind in _TNEF or name == _WINMAIL) and self._unpacked(part):
            return
        if part.is_multipart() or kind == _MAIL:
            self._read_group(kind, part, depth)
        elif kind in _DETACHED and file_name(part) in _SIGNATURE_NAMES:
            self.is_signed = True
        elif _is_written(part, "text/plain", "text/html") or kind.startswith("multipart/"):
            # What calls itself several parts, and has no line that divides it, is a text.
            self.texts.append(_written(part))
        else:
            self._add_file(part)

    def _read_group(self, kind: str, part: Part, depth: int) -> None:
        if kind == _MAIL:
            self._add_message(part)
        elif kind in _REPORTS:
            self.texts.append("\n\n".join(_fields(inner) for inner in parts_of(part)))
        elif kind == "multipart/alternative":
            self._read_alternative(part, depth)
        elif kind == "multipart/encrypted" and depth == 0:
            raise EncryptedFileError("the mail is encrypted for its recipients; store a decrypted copy")
        elif kind == "multipart/signed":
            self._read_signed(part, depth)
        else:
            for inner in parts_of(part):
                self.read(inner, depth=depth + 1)

    def _read_alternative(self, part: Part, depth: int) -> None:
        """Take the plain text where there is any, else the HTML; what else is in there are attachments."""
        inner = parts_of(part)
        plain = next((p for p in inner if _is_written(p, "text/plain") and text_of(p).strip()), None)
        for child in inner:
            if plain is not None and child is not plain and _is_written(child, "text/plain", "text/html"):
                continue
            known = len(self.texts)
            self.read(child, depth=depth + 1)
            if plain is not None and child.is_multipart():
                # The same text as HTML, with pictures or between files: only these are kept.
                del self.texts[known:]

    def _read_signed(self, part: Part, depth: int) -> None:
        self.is_signed = True
        for position, inner in enumerate(parts_of(part)):
            # The first is what is signed, the second signs it: no file that somebody sent.
            if position == 0 or inner.get_content_type() not in _DETACHED:
                self.read(inner, depth=depth + 1)

    def _unwrapped(self, part: Part, depth: int) -> bool:
        """Read what a signed part wraps; return False where it is to be kept as a file, which then says what it is."""
        if file_name(part) not in _SMIME_NAMES:
            return False
        try:
            inner = entity(unwrap(content_of(part)))
        except EncryptedFileError:
            if depth == 0:
                raise
            return False
        except PermanentError:
            return False
        if inner is None:
            return False
        self.is_signed = True
        self.read(inner, depth=depth + 1)
        return True

    def _unpacked(self, part: Part) -> bool:
        """Take the files out of a winmail.dat: a way to send them, and no file that somebody attached."""
        try:
            found = tnef.read(content_of(part))
        except PermanentError:
            return False
        if not any(text.strip() for text in self.texts):
            self.texts.extend(found.texts)
        self.members.extend(found.members)
        return True

    def _add_message(self, part: Part) -> None:
        inner = parts_of(part)
        if not inner:
            return
        message = inner[0]
        content = bytes_of(message)
        if not message.keys() and str(part.get("Content-Transfer-Encoding", "")).strip().lower() == "base64":
            # Against the standard, and sent all the same: the parser took the coded lines for the mail.
            message["Content-Transfer-Encoding"] = "base64"
            content = content_of(message)
            message = parse(content)
        name = file_name(part) or mail.file_name(header(message, "Subject"), ".eml")
        self.members.append(Member(name if name.lower().endswith(".eml") else f"{name}.eml", content))

    def _add_file(self, part: Part) -> None:
        ending = ending_of(part.get_content_type())
        self.members.append(Member(file_name(part) or f"part {len(self.members) + 1}{ending}", content_of(part)))


def _is_written(part: Part, *kinds: str) -> bool:
    return part.get_content_type() in kinds and not file_name(part) and not is_attached(part)


def _written(part: Part) -> str:
    if part.get_content_type() != "text/html":
        return text_of(part)
    if part.get_content_charset() is None:
        # The page may say itself what the mail does not.
        return html.convert(content_of(part)).text.text
    return html.text_of(text_of(part))


def _fields(part: Part) -> str:
    return "\n".join(f"{name}: {header(part, name)}" for name in dict.fromkeys(part.keys()))
