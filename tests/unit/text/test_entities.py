from __future__ import annotations

import random

import pytest

from langchain_memrag.text import find_entities, name_key


def found(text: str) -> list[str]:
    return [mention.name for mention in find_entities(text)]


def kinds(text: str) -> dict[str, str]:
    return {mention.name: mention.type for mention in find_entities(text)}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I'm OK. Yes! Thanks, that's great.",
        "On Monday in May we march on.",
        "Merry Christmas and a Happy New Year!",
        "My Mom and Dad speak French.",
        "Swimming is fun. Dinner was late. Honestly, it rained.",
        "NO WAY! THAT IS AMAZING",
        "Woooah! Awww. Mmm, yum.",
        "JUST do it, it is the BEST",
        "don't touch the boys' things, it's the girls' room",
        'She said "I will be late" and left.',
        "It costs $3.50, or 10% of 35, at 10:30.",
        "e.g. this, i.e. that.",
        "谢谢！好的。",
        "我妈妈和爷爷明天去超市买东西。",
        "上周三是中秋节，周末我休息。",
        "他说“我不去了”。",
        "我在一家互联网公司上班，附近有医院和银行。",
        "太棒了，今年夏天真热。",
        "我叫外卖，你叫什么？",
        "😀😀 👍🏽",
    ],
)
def test_talk_names_nothing(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("《三体》很好看", "三体"),
        ("〈三体〉很好看", "三体"),
        ("我看了「三体」", "三体"),
        ("我看了『三体』", "三体"),
        ("我看了“三体”", "三体"),
        ("We saw “Dune” twice", "Dune"),
        ("We saw ‘Dune’ twice", "Dune"),
        ('We saw "Dune" twice', "Dune"),
        ("We saw 'Dune' twice", "Dune"),
        ("We saw «Dune» twice", "Dune"),
        ("I saw 'Ocean's Eleven' at school", "Ocean's Eleven"),
    ],
)
def test_every_style_of_quotes(text: str, name: str) -> None:
    assert name in found(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ask the University of Michigan.", {"University of Michigan": "organization"}),
        ("Vincent van Gogh lived in Arles.", {"Vincent van Gogh": "person", "Arles": "place"}),
        ("Meet Mr. Smith and Dr. Patel.", {"Smith": "person", "Patel": "person"}),
        ("Ann’s bike is red.", {"Ann": "person"}),
        ("But Hugo went home.", {"Hugo": "person"}),
        ("Will Smith is here.", {"Will Smith": "person"}),
        (
            "We use PostgreSQL, C++ and node.js.",
            {"PostgreSQL": "technology", "C++": "technology", "node.js": "technology"},
        ),
        ("gpt-5-mini runs on k8s", {"gpt-5-mini": "technology", "k8s": "technology"}),
        ("ssh 10.0.0.1 or db.internal.corp", {"10.0.0.1": "host", "db.internal.corp": "host"}),
        ("See https://docs.acme.io/x?y=1.", {"docs.acme.io": "host"}),
        (
            "mail a.b@c.org, ping @ann_k, tag #trip",
            {"a.b@c.org": "handle", "@ann_k": "handle", "#trip": "handle"},
        ),
        ("ban user_42", {"user_42": "handle"}),
        ("Python 3.11 and v2.0.1", {"Python": "technology", "Python 3.11": "version", "v2.0.1": "version"}),
        ("I said hi to Zoë in München.", {"Zoë": "person", "München": "place"}),
        ("Мы видели Анну", {"Анну": "person"}),
        ("小王和老李认识张三丰。", {"小王": "person", "老李": "person", "张三丰": "person"}),
        ("陈老师、王经理和李医生都来了", {"陈老师": "person", "王经理": "person", "李医生": "person"}),
        ("他在上海市第一人民医院", {"上海市第一人民医院": "organization"}),
        ("她在北京大学，他在清华大学", {"北京大学": "organization", "清华大学": "organization"}),
        ("深圳华银科技有限公司在南京路", {"深圳华银科技有限公司": "organization", "南京路": "place"}),
        ("欧阳娜娜会拉琴", {"欧阳娜娜": "person"}),
        ("我的猫叫咪咪。", {"咪咪": "person"}),
        ("我是四川人", {"四川": "place"}),
        ("臺灣大學很美", {"臺灣大學": "organization"}),
        ("达·芬奇画了《蒙娜丽莎》", {"达·芬奇": "person", "蒙娜丽莎": "work"}),
        ("我用PostgreSQL和微信", {"PostgreSQL": "technology", "微信": "product"}),
        (
            "服务器192.168.1.20上的Python 3.12",
            {"192.168.1.20": "host", "Python": "technology", "Python 3.12": "version"},
        ),
    ],
)
def test_names_and_their_kinds(text: str, expected: dict[str, str]) -> None:
    assert kinds(text) == expected


@pytest.mark.parametrize("text", ["256.1.1.1", "call me at 10.30", "1.2.3.4.5"])
def test_numbers_are_no_hosts(text: str) -> None:
    assert not [mention for mention in find_entities(text) if mention.type == "host"]


def test_each_name_once_in_order_and_in_its_place() -> None:
    text = "Tom met ANN. Ann and Tom went to Paris with 小王，小王 likes Paris."
    mentions = find_entities(text)
    assert [mention.name for mention in mentions] == ["Tom", "ANN", "Paris", "小王"]
    assert [mention.start for mention in mentions] == sorted(mention.start for mention in mentions)
    assert all(text[mention.start : mention.end] == mention.name for mention in mentions)


def test_places_in_a_long_text_are_its_own() -> None:
    text = ("It rained all day and nothing happened. " * 300) + "Then Ann came to Lisbon."
    mentions = {mention.name: mention for mention in find_entities(text)}
    assert set(mentions) == {"Ann", "Lisbon"}
    assert text[mentions["Lisbon"].start : mentions["Lisbon"].end] == "Lisbon"


def test_never_raises_and_never_points_elsewhere() -> None:
    rng = random.Random(5)
    pieces = [
        "Ann",
        "'s",
        "“",
        "”",
        "《",
        "》",
        "小",
        "王",
        "老师",
        "·",
        "@",
        "#",
        "http://",
        "gpt-5",
        "the",
        "of",
        " ",
        "公司",
        "，",
        "3.11",
    ]
    ranges = [
        (0, 0x7F),
        (0, 0x2FF),
        (0x4E00, 0x9FFF),
        (0x3000, 0x30FF),
        (0x1F300, 0x1FAFF),
        (0xD800, 0xDFFF),
        (0, 0x10FFFF),
    ]
    for _ in range(3000):
        text = "".join(
            rng.choice(pieces) if rng.random() < 0.5 else chr(rng.randint(*rng.choice(ranges)))
            for _ in range(rng.randint(0, 30))
        )
        mentions = find_entities(text)
        keys = [name_key(mention.name) for mention in mentions]
        assert len(set(keys)) == len(keys)
        for mention in mentions:
            assert mention.name.strip()
            assert len(mention.name) == mention.end - mention.start


@pytest.mark.parametrize(
    "unit", ["#a", "a+", "a@", "小王", "北京公司", "Ann Bob ", "'a ", "《a》", "9", "1.1."]
)
def test_noise_is_no_trap(unit: str) -> None:
    find_entities(unit * (40_000 // len(unit)))
