"""The wordings that tell what a question is after, in English and Chinese."""

from __future__ import annotations

import re
from typing import NamedTuple


class Cues(NamedTuple):
    """The wordings of one language.

    Attributes:
        asks: Says that a message is a question at all.
        relational: Asks how people or things are connected, or for whoever stands in a relation.
        exact: Asks for a time, a place, a number, a name.
        factual: Asks for anything else that is so or is not.
        semantic: Asks for views, reasons, tastes, summaries.
        live: Asks for what changes by the hour, or for a sum.
        tools: Asks for something to be done.
    """

    asks: re.Pattern[str]
    relational: re.Pattern[str]
    exact: re.Pattern[str]
    factual: re.Pattern[str]
    semantic: re.Pattern[str]
    live: re.Pattern[str]
    tools: re.Pattern[str]


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


_ROLE = (
    r"(?:mother|father|mom|dad|mum|parents?|grand\w+|brothers?|sisters?|siblings?|sons?|daughters?|cousins?"
    "|uncle|aunt|niece|nephew|wife|husband|spouse|partner|girlfriend|boyfriend|fianc[eé]e?|friends?|colleagues?|co-?workers?|boss"
    "|manager|supervisor|mentor|assistant|employer|employees?|teammates?|roommates?|neighbou?rs?|owner|founder)"
)
_DOES = (
    "(?:knows?|known|met|introduced|recommended|founded|reports? to|work(?:s|ed)? (?:for|at|with|on)"
    "|manages?|married|supervises?|mentors?|shares? an?|lives? with|belongs? to|owns?|hired|adopted"
    "|supports?)"
)
_TIED = "(?:related|connected|linked|tied|associated|involved)"
_PERSON = r"(?:i|we|you|they|he|she|[\w'-]+)"

ENGLISH = Cues(
    asks=_any(
        r"\?\s*$",
        r"^(?:so |and |but |ok |okay |hey )?(?:who|whom|whose|what|when|where|which|why|how)(?:'s)?\b",
        r"^(?:is|are|was|were|am|do|does|did|has|have|had|can|could|will|would|should)\b",
        r"^(?:in|on|at|with|through|from|to) (?:what|which|whom)\b",
        r"^(?:please )?(?:tell me|name|list|give me|show me|remind me (?:what|who|when|where|which"
        r"|how|why|of))\b",
    ),
    relational=_any(
        r"\b(?:relationship|relation|connection|link|ties?) (?:between|among|with|to)\b",
        rf"\bhow (?:are|is|was|were|do|does) .*\b{_TIED}\b",
        rf"\b(?:is|are|was|were) (?!.*\bnot {_TIED}).*[^-\w]{_TIED}(?: to\b| with\b|\s*[?.]?$)",
        r"\bknows? each other\b|\bin common\b|\bmutual\b|\bfriend of a friend\b|\bknow .* well\?",
        r"\bwhich (?:of .{1,40} )?(?:team|group|club|department|company) (?:do|does"
        r"|did)\b.*\bbelong\b|\bwhich of .*\bmet\b",
        r"\bhow (?:do|did|does) .*\bknow(?:ing)?\b(?! that| how| what| if)",
        r"\bhow (?:do|did|does) .* (?:and|or) .*\b(?:meet|met)\b|\bhow (?:do|did"
        r"|does) .*\bmeet (?:each|his|her)\b",
        rf"\bwho(?:m)? (?:else )?(?:among .{{1,30}} |in .{{1,30}} )?{_DOES}\b",
        r"\bwho(?:m)? (?:do|does|did) .*\b(?:work (?:for|with)|report to|know|marry|date|belong to"
        r"|live with)\b",
        r"\bwho(?:m)? else (?:is|are|was|works|knows)\b|\bis on [\w'-]+ team\b",
        rf"\bwho(?:'s| is| are| was| were) (?:[\w-]+'s|the) (?:\w+ )?{_ROLE}\b(?: of\b|\s*[?.]?$)",
        r"\bwho(?:'s| is| are| was)? .*\b(?:married to|friends with|related to|dating|engaged to)\b",
        rf"^(?:is|are|was|were) .*(?:\b[\w-]+'s|\bmy|\bhis|\bher|\bour) {_ROLE}\b|^(?:is|are|was"
        rf"|were) .* the {_ROLE} of\b",
        rf"\bwhose {_ROLE}\b|\bis a friend of\b|\bthrough whom\b|\bfrom whom\b",
        rf"\b(?:which|what|any) (?:of )?.*\b{_DOES}\b(?<! met)",
        r"\b(?:which|what) .*\b(?:depends? on|calls? the|uses? the|know each)\b|\bwent to school with\b",
        r"^(?:what|who) .*\bboth\b|\b(?:does|do) any(?:one|body)? .*\b(?:know|work)\b"
        r"|\beveryone who\b|\bpeople who\b",
        r"\bwho .*\bmembers? of\b|\bmembers of the\b|\bbelongs? to\b|\bdepends? on\b|\bowned by\b",
        r"^(?:do|did|are) .* and .*\b(?:together|same (?:school|team|company|class)|know)\b|\bwho shares\b",
        r"^(?:is|are|was|were) [\w' -]+ (?:and|or) [\w' -]+ (?:dating|married|siblings|cousins"
        r"|friends|colleagues)\b",
        r"\bwhat (?:connects|links|ties|binds)\b|\bwhat role does .* play\b|\bwhat is \w+ to \w+\b",
        r"\b(?:does|do) (?!i\b|you\b|we\b)[\w']+ know (?!about\b|that\b|how\b)|\bwho knows\b"
        r"|\bwho .* know(?:s)? about\b",
        r"\bwho .*\b(?:works|lives|studies) (?:at|for|with)\b",
    ),
    exact=_any(
        r"\bwhen\b(?!ever)|\bwhere\b(?!ver)",
        r"\bhow (?:many|much|old|long|tall|far|often|big|high|heavy|late|early|fast)\b",
        r"\b(?:what|which) (?:time|date|day|year|month|hour|city|country|colou?r|size|brand|model"
        r"|number|version|name)\b",
        r"\bwhich \w+ (?:did|does|do|was|were)\b(?!.*\b(?:better|best|prefer|enjoy|like|hate|love)\b)",
        r"\b(?:phone number|address|birthday|password|e-?mail|\bip\b|version|score|capital of"
        r"|name of|the date)\b",
        r"\b(?:recommend|suggest|mention|tell|show|give|buy|send|bring|eat|wear|order|read"
        r"|watch)(?:ed)? to me\b",
    ),
    factual=_any(
        r"\b(?:who|whom|whose|which|what)(?:'s)?\b",
        r"^(?:so |and |but )?(?:is|are|was|were|do|does|did|has|have|had)\b",
        r"^(?:please )?(?:tell me|remind me|name|list)\b",
    ),
    semantic=_any(
        r"\bwhy\b|\bhow come\b|\bhow to\b",
        r"\bhow (?:can|could|should|would|might|do you|do i (?:make|usually|feel|deal|get|handle|cope))\b",
        r"\bhow(?:'s| is| was| were| are| did| does| do)(?: (?!long|many|much|old))",
        rf"\b(?:do|does|did|would|will) {_PERSON} (?:like|prefer|enjoy|love|hate|feel|think|want)\b",
        r"\b(?:what|which|who|how|whom) .*\b(?:like|likes|love|loves|enjoys?|prefers?|hates?|dislikes?)\b",
        r"\bfavou?rites?\b|\b(?:better|best) for\b|\bprefer(?:s|red|ence|ences)?\b",
        r"\b(?:thinks?|feels?|feelings?|opinions?|believes?|views?|attitudes?|thoughts?"
        r"|impressions?) (?:about|of|on|towards?)\b",
        r"\bwhat (?:do|does|did) .*\b(?:think|feel|believe|complain|make of|learn from|take away"
        r"|mean to|mean)\b",
        r"\b(?:recommend|suggest(?:ions?)?|advice|ideas?|tips)\b(?! to me\b)",
        r"\b(?:summar\w+|overview|gist|recap|explain|describe|compare|outline|pros and cons|lessons?)\b",
        r"\b(?:tell me about|what do (?:you|i) know about|help me|let's talk|write (?:a|an|me))\b",
        r"\b(?:hobbies|hobby|interests|habits|goals?|personality|strengths|weaknesses|values|outlook"
        r"|usually)\b",
        r"\bshould (?:i|we)\b|\bwould \w+ (?:be|enjoy|like|want)\b|\bmotivat\w+|\bmeans? to\b"
        r"|\bmatters? most\b",
        r"\bmakes? me\b|\binspire\w*|\bconsidered\b|\bcopes?\b|\bideal\b|^am i an?\b|\bin what ways?\b",
        r"\bwhat (?:kind|sort|type) of person\b|\bwhat (?:is|are|was|were) .* like\b"
        r"|\bis \w+ an? \w+ person\b",
        r"\bwhat (?:do people|would|should|makes|motivates)\b|\bany (?:ideas|tips|thoughts)\b",
    ),
    live=_any(
        r"\b(?:weather|forecast)\b.*(?:\?|\b(?:now|today|tomorrow|tonight)\b)",
        r"^(?:will|is) it (?:going to )?(?:rain|snow|be (?:sunny|hot|cold))(?:ing)?\b",
        r"\bwhat time is it\b|\bwhat(?:'s| is) (?:the )?(?:time|date|day)(?: (?:now|today|right now))?\s*\?",
        r"\btoday's date\b|\bwhat day is (?:it|today)\b|\btraffic\b.*\b(?:now|today)\b",
        r"\b(?:current|latest|live|today's) (?:price|rate|score|time|temperature|stock|exchange"
        r"|traffic|news|headlines)",
        r"\bstock (?:market|price)\b.*\b(?:now|today|doing)\b|\bany news\b|\bexchange rate\b",
        r"\bprice of (?:bitcoin|gold|oil|gas)\b|^convert \d",
        r"\b\d[\d.,]* (?:dollars|euros|pounds|miles|kilometers|km|kg|usd|eur) (?:to|in|into) \w+",
        r"\d\s*[*×÷^+]\s*\d|\d\s+[-/x]\s+\d|\d (?:plus|minus|times|divided by|multiplied by) \d",
        r"\d\s*%\s*of\s*\d|\bsqrt\b|\bsquare root\b|^(?:please )?(?:calculate|compute)\b",
    ),
    tools=_any(
        r"^(?:(?:hey|hi|ok|okay|now|and|so)[,\s]+)?(?:please\s+)?(?:(?:can|could|would"
        r"|will) you (?:please )?)?(?:"
        r"search|google|look up|browse|send|e-?mail (?!is|was)\w+|text \w+ (?:that|and|to)|book (?:a"
        r"|me|us|the|two)"
        r"|reserve|schedule|reschedule|cancel (?:my|the)|set (?:an?|the|my) (?:\w+ )?(?:alarm|timer|reminder)"
        r"|remind me (?:to|at|in|on|tomorrow|tonight|later|every|next)|translate|convert|execute"
        r"|run (?:the|a|my)"
        r"|find (?:me )?(?:an? |the )?(?:\w+ )?(?:flights?|hotels?|restaurants?|nearest|nearby"
        r"|tickets?|cheapest)"
        r"|add .* to (?:my|the|our)|open (?:the|my|a)|create (?:an?|the)|delete|remove .* from (?:the|my)"
        r"|check (?:my|the) (?:calendar|inbox|email|schedule|weather|status)|call (?!it|me)\w+ (?:and|to|now)"
        r"|call (?:mom|dad)|play (?:some|the|a|my|me)|order (?:an?|me|some|the)|turn (?:on|off)"
        r"|download|upload|deploy"
        r"|post (?:this|a)|buy (?:me|an?|two|some)|navigate|pay (?:the|my)|start a (?:timer|call))\b",
    ),
)

_ROLE_ZH = (
    "(?:老公|老婆|丈夫|妻子|爱人|妈妈|爸爸|母亲|父亲|哥哥|姐姐|弟弟|妹妹|儿子|女儿|老板|上级|上司|下属|领导|同事|同学|室友"
    "|朋友|好友|女朋友|男朋友|对象|合伙人|秘书|助理|亲戚|邻居|师傅|徒弟|队友|主管|姐妹|兄弟|夫妻|情侣|闺蜜|表哥|表姐|堂哥|舅舅|叔叔|姑姑|姨妈|阿姨|爷爷|奶奶|外公|外婆|侄子|侄女|外甥|孙子|孙女)"
)

CHINESE = Cues(
    asks=_any(
        r"[？?]\s*$|[吗嗎呢么]\s*[。.!！]?\s*$",
        r"谁|誰|什么|什麼|啥|哪|几[点號号个只岁年月次位天人]|幾|多少|多久|多大|多远|多长|多高|何时"
        r"|何時|为何|为什么",
        r"怎么|怎麼|怎样|如何|是不是|有没有|是否",
        r"^(?:请|請)?(?:你|您)?(?:告诉我|告訴我|列出|说说|讲讲|介绍|总结|描述)",
    ),
    relational=_any(
        r"什么关系|啥关系|关系是|的关系|(?:没有?|什么)?(?:联系|关联)(?:吗|[？?]|$|的)|关联起来"
        r"|有关吗|[跟和]哪.*有关",
        r"认识|熟吗|熟不熟|介绍给|通过谁|共同|共友",
        r"(?:是|算)(?:不是)?(?:情侣|夫妻|亲戚|同学|同事|朋友|兄弟|姐妹|一家人)",
        rf"谁是.*的.{{0,3}}{_ROLE_ZH}|是谁的{_ROLE_ZH}|是.{{1,6}}的什么人",
        rf"[^我你您]的?{_ROLE_ZH}们?(?:是谁|是哪|有哪些|都有谁|都是谁|是哪)",
        rf"(?:是|算).{{1,8}}的?{_ROLE_ZH}(?:吗|嗎|么)",
        r"谁(?:跟|和|与|與).*(?:一起|住|同|谈|部门|结婚|是)|谁跟谁|谁和谁|谁也在|谁跟我|谁和我",
        r"谁在.+(?:上班|工作|上学|读书)|有谁在|里谁|里有谁|家里谁",
        r"(?:哪些|哪个|哪位).*(?:依赖|调用|属于|认识|在.+工作)|属于哪|依赖|有哪些成员|成员有",
        r"谁(?:创办|创立|推荐|介绍|带|雇)|(?:创办|创立|推荐|介绍)的[？?。]?$|是谁(?:推荐|介绍|创办"
        r"|创立|带|把.*介绍)",
        r"谈恋爱|同一个|一个(?:学校|部门|公司|团队|单位|班|人)|归谁管|谁管|谁(?:创办|创立)了"
        r"|哪家公司.*(?:老板|有关)",
    ),
    exact=_any(
        r"什么时候|什麼時候|何时|何時|几点|几号|几月|几岁|几年|几个|几只|几次|几位"
        r"|哪[一]?[天年月日项個]|周几|星期几",
        r"多少|多大|多久|多远|多长|多高|高寿|哪里|哪裡|哪儿|哪兒|在哪|什么地方|叫什么|姓什么"
        r"|什么名字|什么牌子",
        r"号码|地址|地点|密码|邮箱|尾号|有效期|车牌|版本号|生日|日期|职业|身高|首都|颜色|主要内容"
        r"|名称|姓名|时间是|规模",
    ),
    factual=_any(
        r"谁|誰|哪|什么|什麼|啥|几",
        r"过吗|了吗|[吗嗎]\s*[？?]|有没有|是不是|是否|还是",
        r"^(?:请)?(?:告诉我|列出)",
    ),
    semantic=_any(
        r"为什么|為什麼|为啥|为何|怎么样|怎麼樣|怎样|如何|怎么|咋",
        r"喜欢|喜歡|爱吃|爱听|爱看|最爱|讨厌|偏好|爱好|兴趣|不爱|想不想|享受|在乎|看重|开心|理想|抱怨|受不了",
        r"觉得|认为|看法|印象|态度|意见|建议|推荐吗|有什么好|好看|好玩|好不好|好吗|该不该|应该"
        r"|要不要|合适|适合",
        r"总结|概括|概述|回顾|介绍一下|介绍下|讲讲|说说|谈谈|聊聊|解释|^描述|描述一下|比较一下|对比"
        r"|利弊|优点|缺点|要点",
        r"教训|启发|意义|带来了什么|变化|学到|收获|体会|想法|打算|计划|感受|希望|期待",
        r"长处|短处|优势|道理|形容|性格|了解我|什么样的|目标有|压力|心情|相处|早起的人|你能做什么"
        r"|买什么|吃什么好|送什么|理一理|写一?(?:首|篇|封信)",
    ),
    live=_any(
        r"现在几点|现在是几点|几点了|今天是?(?:几号|星期几|周几|什么日子)|今天的日期",
        r"天气(?:怎么样|如何|预报|好吗|呢|[？?])|[会要在]下[雨雪]吗|外面.*下[雨雪]了?吗|出太阳吗"
        r"|气温是?多少|今天.*多少度",
        r"(?:现在|今天|当前|目前).*(?:价格|股价|股市|行情|汇率|油价|路况|新闻|头条|堵)",
        r"(?:股市|汇率|比特币).*(?:现在|今天|多少|如何|怎么样)|最新的?(?:价格|股价|汇率|新闻)|堵车吗|堵不堵",
        r"等于多少|等于几|[0-9]\s*[%％]\s*是多少|[0-9]\s*[+*×÷]\s*[0-9]|[0-9]\s*(?:乘以?|加|减|除以)\s*[0-9]",
        r"算一下|计算一下|^计算",
    ),
    tools=_any(
        r"^(?:请|麻烦|你)?(?:你)?(?:能不能|能|可以|可不可以)?(?:请)?(?:帮我|给我|替我|帮忙|请你)?(?:"
        r"查一?[下查询]|搜(?:索|一下|搜)|上网[查搜]|订(?:一|个|张|两|机票|酒店|位|外卖)|预[订定约]"
        r"|点一?个?(?:份|杯)?(?:外卖|奶茶)"
        r"|翻译|打开|关[闭掉]|播放|放一?首|运行|执行|删除|删掉|导航|下载|上传|创建|新建|设(?:置|定"
        r"|一?个|闹钟)|发一?[封条个]"
        r"|提醒我|打电话|打个电话|叫一?辆|买一?[张份个]|转账|看看我.*(?:日程|日历|邮件|安排))",
        r"^给.{1,8}(?:发|打|写)一?[封条个]?(?:邮件|短信|消息|电话|微信)",
        r"^把.+(?:翻译|加到|入|添加|发给|删|关|打开|转成|转换)",
        r"叫我起床|^定一?个.*(?:计时|闹钟)|帮我(?:查|搜|订|预|点|算|发|买|叫|打|翻译|下载|设|约|找)"
        r"|提醒我.*(?:点|开会|时|吃药)",
    ),
)
