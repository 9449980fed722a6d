"""English words that a capital letter does not turn into a name, and words that tell a name's kind."""

from __future__ import annotations

import re

# ruff: noqa: SIM905  (a page of words is easier to read and to amend than a page of quoted words)

# Never part of a name, wherever they stand: talk, calendar, titles before a name, family, nationalities.
TALK = frozenset(
    """
    i i'm i've i'd i'll im ive ok okay yes yeah yep yup no nope nah hi hey hello hiya bye goodbye thanks
    thank thx ty please sorry wow oh ah aww aw hmm hm huh ha haha hahaha lol lmao omg wtf btw fyi asap imo
    imho tbh idk rsvp eta ps diy faq tba tbd am pm bc ad ce bce etc usd eur gbp cny rmb ceo cto cfo coo hr
    vp phd mba id tv pc ai it us mr mrs ms dr prof sir madam dear cheers congrats congratulations welcome
    regards sincerely yay ugh oops whoa gosh god jesus damn cool nice great awesome amazing alright sure
    absolutely definitely exactly qa q a omw brb gg np tgif rip pov vip nsfw yolo wfh ooo eod eow todo tldr
    aka
    """.split()
)
CALENDAR = frozenset(
    """
    monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays
    saturdays sundays mon tue tues wed thu thur thurs fri sat sun january february march april may june july
    august september october november december jan feb mar apr jun jul aug sep sept oct nov dec spring
    summer autumn fall winter today tomorrow yesterday tonight christmas xmas easter thanksgiving halloween
    hanukkah ramadan eid diwali passover kwanzaa lent valentine's valentines new-year
    """.split()
)
HOLIDAYS = frozenset(
    {
        "new year", "new years", "new year's", "new year's eve", "new years eve", "new year's day",
        "happy new year", "christmas eve", "christmas day", "boxing day", "valentine's day",
        "valentines day", "mother's day", "father's day", "independence day", "labor day", "labour day",
        "memorial day", "good friday", "easter sunday", "black friday", "veterans day",
        "st patrick's day", "chinese new year", "lunar new year", "spring festival", "happy birthday",
        "merry christmas", "spring break", "bank holiday",
    }
)  # fmt: skip
NATIONALITIES = frozenset(
    """
    american british english scottish irish welsh french german spanish italian portuguese dutch swedish
    norwegian danish finnish polish russian ukrainian greek turkish arabic arab hebrew jewish persian
    iranian iraqi indian hindi pakistani bengali thai vietnamese korean japanese chinese mandarin cantonese
    taiwanese indonesian malay filipino australian canadian mexican brazilian argentinian chilean colombian
    peruvian cuban african nigerian kenyan egyptian moroccan ethiopian european asian latin latino latina
    hispanic swiss austrian belgian czech hungarian romanian bulgarian serbian croatian icelandic
    mediterranean christian muslim catholic buddhist hindu protestant americans europeans germans italians
    mexicans russians indians canadians australians asians africans
    """.split()
)
TITLES = frozenset(
    """
    mr mrs ms miss mx dr doctor prof professor sir madam dame lord lady president senator governor mayor
    judge captain colonel general lieutenant sergeant officer detective coach pastor father reverend rabbi
    imam sister brother uncle aunt auntie cousin grandma grandpa king queen prince princess saint chef nurse
    principal dean minister chancellor ambassador major commander inspector teacher boss
    """.split()
)
FAMILY = frozenset(
    """
    mom mum mommy mummy mama ma mother dad daddy papa pa pop father grandma grandmother granny nana gran
    grandpa grandfather granddad gramps sis sister bro brother auntie aunt uncle cousin niece nephew son
    daughter wife husband mom's mum's dad's grandma's grandpa's parents kids baby babe honey sweetie darling
    hubby wifey
    """.split()
)
# Words of a person's name that are also plain words; where they open a sentence, what follows decides.
VERBLIKE_NAMES = frozenset(
    "mark will chase pat sue bill jack rob drew frank bob nick chuck skip miles gene don".split()
)
NOUNLIKE_NAMES = frozenset(
    """
    hope rose joy faith grace dawn iris ivy summer autumn amber ruby pearl lily daisy violet jade olive
    crystal melody harmony destiny charity patience prudence heather hazel holly ginger sage reed heath
    cliff art penny jasmine angel sky star robin jay dean dale glen grant lance max ray victor apple amazon
    oracle shell target gap
    """.split()
)
# What follows a name at the start of a sentence: deeds, past or of a third person.
DEEDS = frozenset(
    """
    said says told tells asked asks went goes came comes got gets gave gives took takes made makes had has
    did does works worked lives lived loves loved likes liked hates hated wants wanted needs needed thinks
    thought knows knew lost won wrote writes plays played sings sang teaches taught studies studied moved
    moves called calls texted bought sold sent brought found left met joined quit started finished visited
    showed recommended introduced announced released raised shipped painted cooked baked runs ran owns
    married adopted invited mentioned explained suggested promised agreed disagreed replied answered helped
    cried laughed smiled scored speaks spoke keeps kept seems looks looked turned became lets let paid drove
    drives flew fell fixed broke forgot forgets remembers graduated retired died passed failed arrived wore
    wears ate eats drank drinks slept sleeps felt feels used uses
    """.split()
)
BEING = frozenset(
    "is was isn't wasn't will would can could should might must won't wouldn't can't couldn't".split()
)

_GRAMMAR = """
    a an the this that these those my your his her its our their mine yours hers ours theirs i you he she it
    we they me him us them myself yourself himself herself itself ourselves themselves who whom whose which
    what when where why how and or but nor so yet for if unless until till while whereas although though
    because since as than whether once after before during without within with about above across against
    along among around at behind below beneath beside besides between beyond by despite down except from in
    inside into like near of off on onto out outside over past per through throughout to toward towards
    under underneath up upon via not no none nobody nothing nowhere somebody someone something somewhere
    anybody anyone anything anywhere everybody everyone everything everywhere each every either neither both
    all any some few fewer several many much more most less least little enough other others another such
    same own half double one two three four five six seven eight nine ten eleven twelve twenty thirty forty
    fifty hundred hundreds thousand thousands million millions first second third last next dozens am is are
    was were be been being do does did done doing have has had having can could may might must shall should
    will would ought need dare used let let's lets isn't aren't wasn't weren't don't doesn't didn't haven't
    hasn't hadn't won't wouldn't can't cannot couldn't shouldn't mustn't you're we're they're he's she's
    it's that's there's here's what's who's where's when's how's why's you've we've they've you'll we'll
    they'll he'll she'll it'll you'd we'd they'd he'd she'd there here then now
"""
_ADVERBS = """
    plus anytime someday sometime onwards everyday amid again already almost also alone always altogether
    anyway anyways apart away back barely certainly clearly constantly currently daily deep directly early
    easily else especially even eventually ever exactly far fast finally forever forward frankly frequently
    fully generally gladly gradually hardly hence hopefully however immediately indeed instead just lately
    later likewise literally long mainly maybe meanwhile merely moreover mostly namely naturally nearby
    nearly nevertheless never nonetheless normally obviously often only originally otherwise overall perhaps
    possibly presumably pretty previously probably quickly quite rarely rather really recently regardless
    seldom seriously shortly similarly simply slowly somehow sometimes somewhat soon still suddenly
    supposedly surely thankfully therefore thus together too totally truly twice typically unfortunately
    unlike usually very well whatever whenever wherever whichever whoever honestly basically personally
    luckily interestingly surprisingly speaking given considering regarding including following according
    due
"""
_VERBS = """
    accept add adjust agree allow answer apply ask avoid bake be become begin believe bet book borrow break
    breathe bring build buy calculate call cancel care carry catch change chat check choose clean clear
    click close come compare complete connect consider contact continue cook copy count cover create cut
    dance decide define delete describe deploy design discuss draw dream drink drive drop eat email end
    enjoy ensure enter expect explain explore face feel fetch fight figure fill find finish fix fly focus
    follow forget forgive found gather get give go google grab grow guess hang happen hate hear help hide
    hit hold hug hurt imagine import improve include install invite join jump keep kick kill kiss knock know
    laugh lead learn leave lend lie listen list live load lock look lose love mail make manage match mean
    measure meet mention merge miss mix move name note notice observe offer open order organise organize own
    pack paint park pass pay pick plan play point pop post practice prefer prepare press print promise
    protect prove provide publish pull push put quit raise reach read realise realize recall receive
    recommend record reduce refer reflect relax release remain remember remind remove rent repeat replace
    reply report request respond rest restart return review ride ring rise roll run save say scan schedule
    search see seek seem select sell send serve set share ship shop shout show shut sign sing sit skip sleep
    slow smile sound speak spend split spread stand start stay step stick stop store study submit suggest
    support suppose swim switch take talk taste teach tell test text think throw touch train translate
    travel treat try turn type understand update upgrade use visit vote wait wake walk wander want warn wash
    watch wear win wish wonder work worry write yell zoom march chase mark ping tag ssh went came got gave
    took made said told asked saw ate bought thought knew felt left met heard kept stayed tried worked lived
    loved liked moved started finished called looked used wanted needed talked walked spent
"""
_NOUNS = """
    setback mentor injury chapter section figure page step unit level guitarist scientist artist challenge
    trilogy final sequel doubt plot chess dairy gluten sourdough resilience kindness teamwork bowling
    surfing camaraderie nostalgia closure wildlife scenery sunrise sunrises mindset lifestyle workout
    workouts routine accident accommodation account activity address adult advice affair age agency agent
    air airport album alarm allergies amount animal animals answer apartment app apple apples application
    appointment area argument art article attempt attention attitude audience aunt author baby backpack bag
    ball band bank bar basement basketball bath bathroom beach bean beans bear bed bedroom beer bees benefit
    bike bill bills bird birds birth birthday bits blood board boat body bones boredom boss bottle box boy
    boys boyfriend brain bread breakfast bridge brunch brush budget bug building bus business butter cabin
    cake cakes calendar camera camp camping campus candle candles car card cards career cars case cash cat
    cats cause chair chance character charity cheese chicken child childhood children chocolate choice
    church cities city class classes climate climbing clothes cloud clouds club code coffee colleague
    college colleagues color colour company competition computer concert condition conference connection
    contact content context contract conversation cookies cooking copy corner cost costs country couple
    course courage cousin cows craft crew crime crowd culture cup customer customers cycling damage dancing
    danger data date day days deadline deal death debt decision degree demand depression depth desk dessert
    detail details development device diary diet difference dinner direction director disaster disease
    dishes distance doctor doctors document dog dogs dollar door doors dough drama drawing dream dreams
    dress drink drinks driver drums duck dust duty ear earth economy education effort egg eggs election
    electricity elephants emergency emotion emotions employee employees end energy engine engineer engineers
    entertainment environment equipment error errors evening event events evidence exam example examples
    exercise experience expert eye eyes face fact factor facts failure fair families family fans farm
    fashion fear feedback feelings feet festival fever file files film finance finger fire fish fishing
    fitness flight flights floor flour flower flowers flu food foods foot football force forest fork forms
    freedom friend friends friendship frogs fruit fuel fun function funds furniture future game games gap
    garage garden garlic gas girl girls girlfriend glass glasses goal goals gold golf government grammar
    grandchildren grass ground group groups growth guests guidance guide guilt guitar guy guys gym habit
    habits hair hall hands happiness hard head headache health heart heat height help hiking hill history
    hobbies hobby holiday holidays home homework hopes horse horses hospital hotel hotels hour hours house
    housing human humans humor husband ice idea ideas image impact income industry information insurance
    interest internet interview invitation island issue issues item items jam jazz jealousy job jobs journal
    journalism journey juice justice key keys kid kids king kitchen knee knitting knowledge ladies lack lake
    land language laptop laughter laundry law lawyer lawyers laws leaders leadership learning leave leaves
    legs lesson lessons letter library life light lights limits line link list lists literature location
    loneliness luck lunch lungs luxury machine magic mail man management manager map maps market marketing
    marriage math mathematics matter meal meals meaning meat media medicine meditation meeting meetings
    member members memory memories men menu message messages metal method middle midnight milk mind minute
    minutes mistake mistakes mobile model moment money monkeys month months mood moon morning motivation
    mountain mountains mouse mouth movie movies music musician musicians nails names nature neighbor
    neighbors neighbour neighbours news newspaper night nights noise noon noodles north nose note notes
    number numbers nurse nuts object ocean offer office oil onion onions opening opera opinion option
    options orange order oven owner pain painting pants paper papers parent parents parking part parties
    partner party password past pasta path patience patients pay payment payments peace pencil people pepper
    performance period permission person pet pets phone photo photography photos physics piano picture
    pictures pie pieces pizza place places plan plane planning plans plant plants plastic plate players
    plenty poem poetry police policy politics pool popcorn population position potato potatoes pottery
    poverty power prayer pregnancy present president pressure price prices pride privacy prize problem
    problems process product products program progress project projects proof property protein public
    puppies purpose quality question questions queue rabbits race radio rain rate reality reason recipe red
    relationship relationships religion rent research respect rest restaurant restaurants result results
    rice rights ring risk river road roads rock role roof room rooms rope roses roots rule rules running
    sadness safety salad salary sale sales salmon salt samples sand sandwich scale schedule school schools
    science screen sea season seat secret security self sense series service services session sessions
    settings sex shame shape sheep shirt shoe shoes shopping shops shoulder show shower sign silence silver
    singer singing site size skiing skill skills skin sky sleep smell smoke snacks snow soap soccer society
    socks software soil solution son song songs soup sources south space spaghetti sport sports staff stage
    stairs star stars state statistics status steak steps stock stomach stone stories story strangers
    strategy street strength stress structure student students stuff style subject success sugar suit sun
    sunlight sunset sunshine support surgery surprise swimming system systems table tables talent tasks
    taste tax taxes tea teacher teachers team teams technology teeth temperature tennis term tests text
    theater theatre theory therapy thing things thoughts thunder ticket tickets tie time times tips title
    toast toilet tomato tomatoes tone tool tools top topic topics tourists town toys track trade tradition
    traffic training trains transport trash travel treatment trees trip trips trouble trucks trust truth
    tuition tv type umbrella uncle union university users vacation value vegetables version video videos
    view village violence violin virus vision visitors voice volleyball volunteers waiter walks wall war
    warmth washing waste watch water waves way wealth weather wedding week weekend weekends weeks weight
    west wheels wife wifi wind window windows wine winner winners woman women wood words work worker workers
    world writers writing year years yoga youth petals bugs meds clay hockey ballet karaoke sushi ramen
    tacos pancakes burgers hummus kayaking grief anxiety insomnia migraines asthma
"""
_ADJECTIVES = """
    able afraid alive amazing angry annoying anxious average awful awkward bad beautiful best better big
    bitter black blue boring brave brief bright broken brown busy calm careful cheap cheaper chilly classic
    clean clever cloudy cold comfortable common complicated confident confused cool correct crazy curious
    cute dark deep delicious different difficult dirty dry dull eager easy effective elegant embarrassing
    empty entire exciting expensive extra fair familiar famous fantastic fine firm fit flat foggy foreign
    free fresh friendly full funny further gentle giant gigantic glad good gorgeous grateful gray great
    green grey guilty happy hard healthy heavy high honest hopeless horrible hot huge humid hungry ill
    important impossible incredible interesting international jealous keen large late latest lazy legal
    light local lonely loose loud lovely low lucky mad main major mental mild minor missing modern more most
    narrow nasty natural neat nervous new nice noisy normal odd okay old older online ordinary organic
    painful pale patient perfect personal pink plain pleasant polite poor popular positive possible powerful
    practical precious pregnant private proper proud pure purple quick quiet random rare raw ready real
    recent relieved responsible rich right rough rude sad safe salty scary sensitive serious severe shallow
    sharp shiny short shy sick silent silly similar simple single sleepy slight slim slow small smart smooth
    snowy social soft sorry sour special spicy stale steep straight strange strict strong stupid sunny super
    sweet tall tasty terrible terrific thick thin tight tiny tired tough true typical ugly unable
    unbelievable unique unusual upset urgent useful useless usual vague various vast vivid warm weak weird
    wet white whole wide wild wise wonderful worse worst worth wrong yellow young younger senior junior
    chief former current final fourth fifth sixth agent
"""
GRAMMAR = frozenset(_GRAMMAR.split())
# Before a capitalised word these open the sentence; a noun or an adjective may be part of the name.
OPENERS = GRAMMAR | frozenset(f"{_ADVERBS} {_VERBS}".split())
# Words that open sentences without being names.
COMMON = OPENERS | frozenset(f"{_NOUNS} {_ADJECTIVES}".split()) | TALK | CALENDAR | FAMILY | NATIONALITIES

# Cries are spelt in any length: "woooah", "awww", "mmm".
CRY = re.compile(
    r"w+o+a*h+|w+o+o+|w+o+[-\s]?h+o+|a+w+|o+f+|o+h+|o+o+h+|m+|h+m+|y+u+m+|y+a+y+|y+e+a+h*|p+h+e+w+|(?:a*h+a+)+h*|(?:h+e+)+|ah+h+\w*|no+|so+|u+g+h+|e+w+"
)
# Endings of plain words: an unknown word with one of them opens a sentence, it does not name.
COMMON_ENDINGS = tuple(
    """
    ing ings ly ness tion tions sion sions ment ments ful ous ive able ible ance ence ity ism ists ology
    ical ed ship hood wards wise ables ers
    """.split()
)
