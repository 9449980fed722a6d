"""Words that tell texts apart too little to be indexed, and words that only make a text a question."""

# A page of words is easier to read and to amend than a page of quoted words.
# ruff: noqa: SIM905

from __future__ import annotations

# "will", "may" and "can" are left in: two of them are names, and BM25 weighs them down by itself.
ENGLISH = frozenset(
    """
    a an the and or but nor so if of at by for with to from in into on onto as than then that this these
    those there here is am are was were be been being do does did doing done have has had having it its
    itself i me my mine myself you your yours yourself he him his himself she her hers herself we us our
    ours they them their theirs themselves not no i'm i've i'd i'll you're you've you'd you'll he's he'd
    he'll she's she'd she'll it's it'd it'll we're we've we'd we'll they're they've they'd they'll that's
    there's here's isn't aren't wasn't weren't don't doesn't didn't haven't hasn't hadn't won't wouldn't
    can't cannot couldn't shouldn't im ive dont doesnt didnt
    """.split()
)

# Dropped from queries alone: in a document "who" may be a band.
ENGLISH_QUESTION = frozenset(
    """
    who whom whose what which when where why how who's what's when's where's why's how's who're what're
    would could should might shall please tell
    """.split()
)

CHINESE = frozenset(
    """
    的 了 是 在 和 与 及 跟 也 都 就 而 着 地 得 之 于 把 被 啊 呀 哦 嗯 哎 唉 嘛 吧 啦 呗 哈 噢 喔 我 你 您
    他 她 它 我们 你们 他们 她们 它们 咱 咱们 这 那 这个 那个 这些 那些 这里 那里 这儿 那儿 個 這 這個 這些
    這裡 於 與 們 我們 你們 他們 她們 还 還 又 很 会 會 一个 一個 个 有 要 不 没 沒
    """.split()
)

CHINESE_QUESTION = frozenset(
    """
    吗 呢 么 嗎 麼 谁 誰 什么 什麼 啥 哪 哪个 哪個 哪些 哪里 哪裡 哪儿 哪兒 哪位 哪年 哪天 怎么 怎麼 怎样
    怎樣 怎么样 怎麼樣 如何 为什么 為什麼 为何 為何 多少 几 幾 几个 多久 多大 多长 时候 時候 何时 何時
    什么时候 什麼時候 是否 是不是 有没有 有沒有 请 請 请问 請問 告诉 告訴
    """.split()
)
