"""The configured model, and loud errors when the settings do not fit it."""

import pytest

from shared.errors import EmbeddingWidthError, MisconfiguredError
from shared.providers.embedding.bedrock import BedrockEmbedding
from shared.providers.embedding.cache import CachedEmbedding
from shared.providers.embedding.factory import make_embedding_provider, verify_width
from shared.providers.embedding.local_e5 import LocalE5Embedding
from shared.providers.embedding.openai_compatible import OpenAiCompatibleEmbedding
from shared.settings import load_settings
from tests.unit.providers.conftest import Reply


def made(client=None, *, dimensions, **embedding):
    environment = {f"KI_EMBEDDING__{name.upper()}": str(value) for name, value in embedding.items()}
    return make_embedding_provider(
        load_settings(environment | {"KI_RETRIEVAL__EMBEDDING_DIMENSIONS": str(dimensions)}), client=client
    )


def test_the_local_model_is_made_with_its_cache(graph_dir):
    path = graph_dir / "cache.sqlite"
    provider = made(provider="local_e5", model_id="multilingual-e5-small", dimensions=384, cache_path=path)
    assert isinstance(provider, CachedEmbedding)
    assert (provider.model_id, provider.dimensions) == ("multilingual-e5-small", 384)
    assert len(provider.embed_passages(["Miete"])[0]) == 384
    assert path.exists()


def test_the_local_model_without_a_cache_stands_alone():
    provider = made(provider="local_e5", model_id="multilingual-e5-small", dimensions=384)
    assert isinstance(provider, LocalE5Embedding)


def test_a_width_the_local_model_does_not_have_names_both():
    with pytest.raises(EmbeddingWidthError) as caught:
        made(provider="local_e5", model_id="multilingual-e5-small", dimensions=1536)
    for part in ("multilingual-e5-small", "384 dimensions", "1536 are configured", "EMBEDDING_DIMENSIONS=384"):
        assert part in str(caught.value)


def test_the_local_provider_does_not_pretend_to_be_another_model():
    with pytest.raises(MisconfiguredError, match="KI_EMBEDDING__MODEL_ID=multilingual-e5-small"):
        made(provider="local_e5", model_id="amazon.titan-embed-text-v2:0", dimensions=384)


def test_bedrock_uses_the_client_it_is_handed():
    provider = made(client=object(), provider="bedrock", model_id="cohere.embed-v4:0", dimensions=1536)
    assert isinstance(provider, BedrockEmbedding)


def test_a_width_bedrocks_model_does_not_have_fails_at_start():
    with pytest.raises(EmbeddingWidthError, match="256, 512, 1024 dimensions, but 1536 are configured"):
        made(client=object(), provider="bedrock", model_id="amazon.titan-embed-text-v2:0", dimensions=1536)


def test_a_gateway_needs_an_address():
    with pytest.raises(MisconfiguredError, match="KI_EMBEDDING__BASE_URL"):
        made(provider="openai_compatible", model_id="m", dimensions=4)


def test_a_gateway_gets_the_key_from_the_file(server, tmp_path):
    key_file = tmp_path / "key"
    key_file.write_text("not-a-secret\n")
    server.replies = [Reply({"data": [{"index": 0, "embedding": [1, 2, 3, 4]}]})]
    provider = made(
        provider="openai_compatible", model_id="m", dimensions=4, base_url=server.url, api_key_file=key_file
    )
    assert isinstance(provider, OpenAiCompatibleEmbedding)
    verify_width(provider)
    assert server.headers[0]["Authorization"] == "Bearer not-a-secret"


@pytest.mark.parametrize("content", [None, b"", b" \n", b"two\nlines", b"\xff\xfe"])
def test_an_unusable_key_file_is_refused(tmp_path, content):
    key_file = tmp_path / "key"
    if content is not None:
        key_file.write_bytes(content)
    with pytest.raises(MisconfiguredError, match="KI_EMBEDDING__API_KEY_FILE"):
        made(provider="openai_compatible", model_id="m", dimensions=4, base_url="http://x", api_key_file=key_file)


def test_the_true_width_of_a_remote_model_is_verified_on_demand(server):
    server.replies = [Reply({"data": [{"index": 0, "embedding": [1, 2, 3]}]})]
    provider = made(provider="openai_compatible", model_id="m", dimensions=4, base_url=server.url)
    with pytest.raises(EmbeddingWidthError, match="m makes vectors of 3 dimensions, but 4 are configured"):
        verify_width(provider)
