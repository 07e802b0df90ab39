import pytest

from shared.search.function_words import content_words


@pytest.mark.parametrize(
    ("question", "content"),
    [
        ("Wie lange habe ich Zeit, eine Rechnung einzuklagen?", "lange Zeit, Rechnung einzuklagen?"),
        ("Can the landlord terminate the lease without notice?", "landlord terminate lease without notice?"),
        ("nicht ohne Gegenleistung", "nicht ohne Gegenleistung"),
        ("der die das", "der die das"),
        ("12 O 34/21", "12 O 34/21"),
        ("Treu und Glauben", "Treu Glauben"),
    ],
)
def test_only_words_that_say_what_it_is_about_pass_the_gate(question: str, content: str) -> None:
    assert content_words(question) == content


def test_a_question_of_function_words_alone_keeps_them() -> None:
    assert content_words("Was ist das?") == "Was ist das?"
