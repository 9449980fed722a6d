"""What every engine must do to play a role, as test classes to derive from; they need pytest.

```python
class TestMyIndex(SearchIndexContract):
    @pytest.fixture
    def index(self) -> SearchIndex: ...          # empty, for vectors of `self.width` dimensions

    @pytest.fixture
    def new_space(self) -> Callable[[], int]: ...    # a number that no other space has
```
"""

from __future__ import annotations

from langchain_memrag.testing.contracts.cache import CacheContract
from langchain_memrag.testing.contracts.graph import GraphStoreContract
from langchain_memrag.testing.contracts.search import SearchIndexContract

__all__ = ["CacheContract", "GraphStoreContract", "SearchIndexContract"]
