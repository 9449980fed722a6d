"""The wordings that tell what a question is after, in English and Chinese."""

from __future__ import annotations

import re
from typing import NamedTuple

_KIN = (
    "mother|father|mom|dad|mum|parent|parents|brother|sister|sibling|siblings|son|daughter|cousin|uncle|aunt|niece|nephew"
    "|wife|husband|spouse|partner|girlfriend|boyfriend|fiance|friend|friends|colleague|colleagues|coworker|boss|manager"
    "|supervisor|mentor|assistant|employer|employee|teammate|roommate|neighbor|neighbour|owner|founder|landlord|teacher"
)
_VERBS_OF_PEOPLE = (
    "know|knows|known|met|meet|introduced|recommended|founded|reports?|works?|worked|manages?|married|dating|dates"
    "|supervises?|mentors?|shares?|lives? with|belongs?|owns?|hired|adopted"
)
_KIN_ZH = (
    "老公|老婆|丈夫|妻子|爱人|妈妈|爸爸|母亲|父亲|爸|妈|哥哥|姐姐|弟弟|妹妹|儿子|女儿|老板|上级|上司|下属|领导|同事|同学|室友|朋友"
    "|好友|女朋友|男朋友|对象|合伙人|秘书|助理|亲戚|老师|学生|邻居|师傅|徒弟|队友|主管|经理|姐妹|兄弟|夫妻|情侣|闺蜜|表哥|表姐|堂哥"
)


class Cues(NamedTuple):
    """The wordings of one language: each pattern found is a reason for its category."""

    asks: re.Pattern[str]
    relational: re.Pattern[str]
    exact: re.Pattern[str]
    factual: re.Pattern[str]
    semantic: re.Pattern[str]
    live: re.Pattern[str]
    tools: re.Pattern[str]


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


_POLITE = r"^(?:hey|hi|ok|okay|please|now|and|so)?[,\s]*(?:please\s+)?(?:(?:can|could|would|will) you (?:please )?|i need you to )?"

ENGLISH = Cues(
    asks=_any(
        r"\?\s*$",
        r"^(?:so |and |but |ok |okay |hey )?(?:who|whom|whose|what|when|where|which|why|how|is|are|was|were|am|do|does|did|has|have|had"
        r"|can|could|will|would|should|in what|in which|on what|on which|at what|with whom|through whom|from whom|to whom"
        r"|what's|who's|where's|when's|how's)\b",
        r"^(?:please )?(?:tell me|remind me (?:what|who|when|where|which|how|why|of)|name|list|give me|show me|do you (?:know|remember))\b",
    ),
    relational=_any(
        r"\b(?:relationship|relation|connection|link|difference in rank|ties?)\b.{0,20}\b(?:between|among|with|to)\b",
        r"\b(?:related|connected|linked)\b(?!.*\bnews\b)",
        r"\bknow(?:s)? each other\b|\bin common\b|\bmutual\b|\bfriend of a friend\b|\bwho .*\bknows? (?:who|whom)\b",
        rf"\bwho(?:m)? (?:else |among .{{1,30}} |in .{{1,30}} )?(?:{_VERBS_OF_PEOPLE})\b(?! won)",
        r"\bwho(?:m)? (?:do|does|did) .*\b(?:work for|work with|report to|know|marry|date|belong to|live with|meet through)\b",
        rf"\bwho(?:'s| is| are| was| were)? (?:[\w-]+'s|the) (?:\w+ )?(?:{_KIN})\b(?: of\b|\?|$)",
        rf"\bwho(?:'s| is| are| was) (?:married to|friends with|related to|dating|engaged to|close to|in charge of \w+'s)",
        rf"^(?:is|are|was|were) .*(?:\b[\w-]+'s|\bmy|\bhis|\bher|\bour) (?:{_KIN})\b",
        rf"\bwhose (?:{_KIN})\b|\bwho is whose\b",
        r"\b(?:how|where) (?:do|did|does) .*\b(?:know (?!that|how|what)[A-Za-z]+|meet|met)\b",
        r"\bhow (?:are|is|were|was) .* (?:related|connected|linked|associated|involved)\b",
        r"\b(?:which|what|any|does any|do any|does anyone|list everyone|everyone|anyone)\b.*\b(?:know each|knows? |works? (?:at|for|with)"
        r"|met |reports? to|depends? on|belongs? to|calls? the|lives? with|uses? the|owned by|friends? with)\b(?!.*\bhow many\b)",
        r"\b(?:members?|part) of (?:the|my|our|which|what)\b|\bbelongs? to\b|\bdepends? on\b|\bowned by\b|\bworks? together\b",
        r"\b(?:are|is) .* (?:dating|married|siblings|cousins|friends|colleagues|related)\b",
        r"\bthrough whom\b|\bwhat (?:connects|links|ties|binds)\b|\bwhat (?:role|part) does .* play\b|\bwhat is \w+ to \w+\b",
        r"\bwho (?:do|does|did) (?:i|we) know\b|\bsame (?:school|team|company|department|class)\b|\bworks? for\b.*\bfounded\b|\bfounded\b.*\bworks? for\b",
        r"^do .* (?:and|or) .* (?:work|live|study|know)\b|\bdoes \w+ know\b|\bknows? about .* besides\b|\bhow .* know\b.*\bother\b",
    ),
    exact=_any(
        r"\b(?:when|where)\b(?!ver)",
        r"\bhow (?:many|much|old|long|tall|far|often|big|high|heavy|late|early|fast)\b",
        r"\b(?:what|which|at what|on which|in what|on what) (?:time|date|day|year|month|hour|city|country|colou?r|size|brand|model|number|version|name"
        r"|address|age|price|instrument|restaurant|hotel|book|university|school)\b",
        r"\b(?:phone number|address|birthday|password|email|e-mail|\bip\b|version|score|capital of|name of|the date|zip code)\b",
    ),
    factual=_any(
        r"\b(?:who|whom|whose|which|what|what's|who's)\b",
        r"^(?:so |and |but )?(?:is|are|was|were|do|does|did|has|have|had)\b",
        r"^(?:please )?(?:tell me|remind me|name|list)\b",
    ),
    semantic=_any(
        r"\bwhy\b|\bhow come\b|\bhow (?:can|could|should|would|might|to|do you|do i (?:make|usually|feel|deal|get|handle|cope))\b",
        r"\bhow (?:is|was|were|are|did|does|do) (?!.*\b(?:related|connected|know|meet|met)\b)(?!long|many|much|old)",
        r"\b(?:like|likes|liked|love|loves|enjoy|enjoys|enjoyed|prefer|prefers|hate|hates|dislike|favou?rite) (?:to |about|this|that|it|her|his|their|most)?",
        r"\bdo (?:i|you|we|they) (?:like|prefer|enjoy|love|hate|feel|think)\b|\b(?:i|you|we|they|he|she|tom) (?:enjoy|prefer)\b",
        r"\b(?:think|thinks|feel|feels|opinion|opinions|believe|view|views|attitude|recommend|suggestion|suggest|advice|ideas?)\b(?! to me\b)",
        r"\b(?:summar\w+|overview|gist|recap|explain|describe|compare|outline|pros and cons|trade-?offs?|lessons?|tell me about|what do you know)\b",
        r"\b(?:hobbies|hobby|interests|preferences|preference|habits|goals?|dreams|personality|strengths|weaknesses|values|plans? for the future)\b",
        r"\b(?:should i|would \w+ (?:be|enjoy|like|want)|motivat\w+|mean(?:s)? to|matters? most|makes me|inspire\w*|considered|cope|ideal)\b",
        r"\bwhat (?:kind|sort|type) of person\b|\bwhat (?:is|are|was|were) .* like\b|^am i\b|\bin what ways?\b|\bany (?:ideas|tips|thoughts)\b",
        r"\bwhat (?:do people|would|should|makes|motivates)\b|\bhelp me\b|\blet's talk\b|\bwrite (?:a|an|me)\b",
    ),
    live=_any(
        r"\b(?:weather|forecast|temperature)\b.*(?:\?|\b(?:now|today|tomorrow|tonight|like|in [A-Z])\b)|^will it (?:rain|snow|be (?:sunny|hot|cold))\b",
        r"\bwhat time is it\b|\bwhat(?:'s| is) (?:the )?(?:time|date|day)(?: (?:now|today|right now))?\s*\?|\btoday's date\b|\bwhat day is (?:it|today)\b",
        r"\b(?:current|latest|live|today's) (?:price|rate|score|time|temperature|stock|exchange rate|traffic|news|headlines)\b",
        r"\bstock (?:market|price)\b.*\b(?:now|today|doing)\b|\b(?:any|latest|today's) news\b|\bexchange rate\b|\bprice of (?:bitcoin|gold|oil|gas)\b",
        r"\bconvert \d|\b\d[\d.,]* (?:dollars|euros|pounds|miles|kilometers|km|kg|usd|eur) (?:to|in|into) \w+|\bhow much is \d",
        r"(?:^|[\s(])\d[\d.,]*\s*(?:[*×x/÷^+]|plus|minus|times|divided by)\s*\d|\d\s*%\s*of\s*\d|\bsqrt\b|\bsquare root\b|^(?:please )?(?:calculate|compute)\b",
    ),
    tools=re.compile(
        _POLITE
        + r"(?:search|google|look up|look for (?:flights|hotels)|browse|send|e?-?mail (?!is|was)\w+|text \w+ (?:that|and)|book (?:a|me|us|the|two)|reserve"
        r"|schedule|reschedule|cancel (?:my|the)|set (?:an?|the|my) (?:alarm|timer|reminder)|remind me (?:to|at|in|on|tomorrow|tonight|later|every|next)"
        r"|translate|convert|find (?:me )?(?:flights|a flight|hotels|a hotel|the nearest|nearby)|run (?:the|a|my)|execute|add .* to (?:my|the|our)"
        r"|open (?:the|my|a)|create (?:a|an|the)|delete|remove .* from (?:the|my)|check (?:my|the) (?:calendar|inbox|email|schedule|weather|status)"
        r"|call (?!it|me)\w+ (?:and|to|now)|call (?:mom|dad)|play (?:some|the|a|my|me)|order (?:a|an|me|some|the)|turn (?:on|off)|download|upload|deploy"
        r"|post (?:this|a)|buy (?:me|a|two|some)|navigate|pay (?:the|my)|start a (?:timer|call)|show me the weather)\b",
        re.IGNORECASE,
    ),
)

CHINESE = Cues(
    asks=_any(
        r"[？?]\s*$|[吗嗎呢么]\s*[。.!！]?\s*$",
        r"谁|誰|什么|什麼|啥|哪|几[点號号个只岁年月次位天人]|幾|多少|多久|多大|多远|多长|多高|何时|何時|为何|怎么|怎麼|怎样|如何|是不是|有没有|是否|为什么",
        r"^(?:请|請)?(?:你|您)?(?:告诉我|告訴我|列出|说说|讲讲|介绍|总结|描述)",
    ),
    relational=_any(
        r"什么关系|啥关系|关系是|的关系|有没?有?(?:什么|没有)?(?:关系|联系|关联)|有关联|关联吗|有什么联系|跟.*有关|和.*有关",
        r"认识|介绍.*(?:的|认识)[？?。]?$|通过谁|共同|共友|(?:是|算)(?:不是)?(?:情侣|夫妻|亲戚|同学|同事|朋友|兄弟|姐妹|一家人)",
        rf"谁是.*的(?:{_KIN_ZH})|[^我你您](?:的)?(?:{_KIN_ZH})(?:们)?(?:是谁|有哪些|都有谁|叫什么人)|是谁的(?:{_KIN_ZH})|是.{{1,6}}的什么人",
        rf"(?:是|算).{{1,8}}的?(?:{_KIN_ZH})(?:吗|嗎|么)|谁(?:跟|和|与|與).*(?:一起|住|同|谈|部门|结婚|是)|谁跟谁|谁和谁",
        r"谁在.+(?:上班|工作|上学|读书)|有谁在|里谁|里有谁|(?:哪些|哪个|哪位).*(?:依赖|调用|属于|认识|在.+工作)|属于哪|依赖|有哪些成员|成员有",
        r"谁(?:创办|创立|推荐|介绍|带|雇)|(?:创办|创立|推荐|介绍)的|是谁(?:推荐|介绍|创办|创立|带)|谈恋爱|同一个|一个(?:学校|部门|公司|团队|班|人)",
        r"(?:下属|上级|成员|同事)(?:有|是)(?:哪些|谁)|家里谁|跟.*什么关系|哪家公司.*老板",
    ),
    exact=_any(
        r"什么时候|什麼時候|何时|何時|几点|几号|几月|几岁|几年|几个|几只|几次|几位|哪[一]?[天年月日]|周几|星期几|多少|多大|多久|多远|多长|多高|高寿",
        r"哪里|哪裡|哪儿|哪兒|在哪|什么地方|叫什么|姓什么|什么名字|号码|地址|密码|邮箱|尾号|有效期|车牌|版本号|生日|日期|职业|身高|首都|颜色|主要内容",
    ),
    factual=_any(
        r"谁|誰|哪|什么|什麼|啥|几",
        r"过吗|了吗|[吗嗎]\s*[？?]|有没有|是不是|是否|还是",
        r"^(?:请)?(?:告诉我|列出)",
    ),
    semantic=_any(
        r"为什么|為什麼|为啥|为何|怎么样|怎麼樣|怎样|如何|怎么(?!认识)|咋",
        r"喜欢|喜歡|爱吃|爱听|爱看|讨厌|偏好|爱好|兴趣|更喜欢|不爱|想不想|享受|在乎|看重|开心|理想",
        r"觉得|认为|看法|印象|态度|意见|建议|推荐吗|有什么好|好看|好玩|好不好|该不该|应该|要不要|合适",
        r"总结|概括|概述|介绍一下|介绍下|讲讲|说说|谈谈|聊聊|解释|描述|比较一下|对比|利弊|优点|缺点|优缺点|要点|教训|启发|意义|带来了什么|变化",
        r"性格|了解我|是个?什么样的|什么样的人|目标|压力|心情|情况|相处|早起的人|你能做什么|买什么|吃什么好|送什么|理一理|写(?:一)?(?:首|篇|封信)",
    ),
    live=_any(
        r"现在几点|现在是几点|几点了|今天(?:是)?(?:几号|星期几|周几|什么日子)|今天的日期",
        r"天气(?:怎么样|如何|预报|好吗|呢|[？?])|(?:会|要)?下[雨雪]吗|气温(?:是)?多少|多少度",
        r"(?:现在|今天|当前|目前|最新).*(?:价格|股价|股市|行情|汇率|油价|路况|新闻|头条)|(?:股市|汇率|比特币).*(?:现在|今天|多少|如何|怎么样)",
        r"等于多少|等于几|[0-9]\s*[%％]\s*是多少|[0-9]+\s*[-+*/×÷乘加减除]\s*以?\s*[0-9]+|算一下|计算一下|^计算",
    ),
    tools=_any(
        r"^(?:请|麻烦|你)?(?:你)?(?:能不能|能|可以|可不可以)?(?:请)?(?:再)?(?:帮我|给我|替我|帮忙|请你)?(?:查(?:一)?(?:下|查|询)|搜(?:索|一下|搜)|上网(?:查|搜)"
        r"|订(?:一|个|张|两|机票|酒店|位|外卖)|预[订定约]|点(?:一|个)?(?:份|杯)?(?:外卖|餐|奶茶)|翻译|打开|关(?:闭|掉)|播放|放(?:一)?首|运行|执行|删除|删掉"
        r"|导航|下载|上传|创建|新建|建一个|设(?:置|定)?(?:一)?个?|发(?:一)?(?:封|条|个)|提醒我|打电话|打个电话|呼叫|叫(?:一)?辆|买(?:一)?(?:张|份|个)|转账|看看我.*(?:日程|日历|邮件|安排))",
        r"^给.{1,8}(?:发|打|写)(?:一)?(?:封|条|个)?(?:邮件|短信|消息|电话|微信)|^把.+(?:翻译|加到|加入|添加|发给|删|关|打开|转成|转换)|叫我起床|闹钟",
        r"帮我(?:查|搜|订|预|点|算|发|买|叫|打|翻译|下载|设|约|找一?下)|提醒我.*(?:点|开会|时|吃药)",
    ),
)
