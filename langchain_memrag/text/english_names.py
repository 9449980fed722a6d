"""Names that everybody knows, and the words around a name that tell what kind it is."""

from __future__ import annotations

# ruff: noqa: SIM905  (a page of words is easier to read and to amend than a page of quoted words)

GIVEN_NAMES = frozenset(
    """
    aaron abby abdul abigail adam adele adrian agnes ahmed aiden aisha alan albert alejandro alex alexa
    alexander alexandra alexis alfred ali alice alicia alina alison allison amanda amelia amina amir amit
    amy ana anastasia andre andrea andrew andy angela angelica anita ann anna anne annie anthony antonio
    anya april archie aria ariana arjun arthur asha ashley astrid audrey austin ava ayesha barbara beatrice
    becky bella ben benjamin bernard beth betty bianca blake bob bobby boris brad bradley brandon brenda
    brian bridget brittany brooke bruce bryan caleb calvin cameron camila carl carla carlos carmen carol
    carolina caroline carolyn carrie carter catherine cathy cecilia charles charlie charlotte chen chloe
    chris christian christina christine christopher cindy claire clara clark claudia colin connor courtney
    craig cynthia daisuke damian dan dana daniel daniela danielle danny dave david deborah debbie deepak
    denise dennis derek diana diane diego dmitri dominic donald donna dora doris dorothy doug douglas dylan
    eddie edgar edith edward elaine eleanor elena eli elijah elisa elizabeth ella ellen ellie elliot emily
    emma enrique eric erica erik erin ethan eugene eva evan evelyn farah fatima felipe felix fernando fiona
    florence frances francesca francis francisco fred freya gabriel gabriela gary gavin george georgia
    gerald gina giovanni giulia gloria gordon graham greg gregory greta guillermo gustavo hannah hans harold
    harper harriet harry hassan heidi helen helena henry hiroshi howard hugo ian ibrahim ingrid irene isaac
    isabel isabella ivan jackson jacob jake james jamie jan jane janet janice jared jasmin jason javier jean
    jeff jeffrey jennifer jenny jeremy jerry jesse jessica jill jim jimmy joan joanna joe joel john johnny
    jon jonathan jordan jorge jose joseph josh joshua juan judith judy julia julian juliana julie justin
    karen karim karl kate katherine kathleen kathy katie keith kelly ken kenji kenneth kevin khalid kim
    kimberly klaus kofi kurt kyle larry lars laura lauren lawrence layla lee leila lena leo leon leonard
    leslie liam lin linda lindsay lisa logan lorenzo louis louise lucas lucia lucy luis luke luna lydia lynn
    madison maggie magnus malik marco marcus margaret maria mariam marie marina mario marion marlene marta
    martha martin marvin mary mateo matt matthew maureen maya megan mei mel melanie melissa mia michael
    michelle miguel mike mila milan mina miriam mohamed mohammed molly monica morgan muhammad nadia nancy
    naomi natalia natalie natasha nathan neil nicholas nicole nikhil nikita nina noah noor nora norman oleg
    olga oliver olivia omar oscar owen pablo pamela patricia patrick paul paula pedro peggy peter phil
    philip phillip phoebe pierre priya rachel rafael rahul raj rajesh ralph ramon randy raul ravi raymond
    rebecca reggie renee rex ricardo richard rick riley rita robert roberto rodrigo roger ron ronald rosa
    rosie ross roy russell ruth ryan sabrina sally sam samantha samir samuel sandra sanjay santiago sara
    sarah scott sean sebastian serena sergei seth shannon sharon shawn sheila shirley sierra simon sofia
    sonia sophia sophie stacy stan stanley stella stephanie stephen steve steven stuart susan suzanne sven
    sylvia tamara tanya tara taylor ted teresa terry theo theodore theresa thomas tiffany tim timothy tina
    toby todd tom tommy tony tracy travis tyler valentina valerie vanessa vera veronica vicky victoria
    vikram vincent virginia vivian vladimir walter wanda wayne wei wendy wesley wilhelm william willow
    xavier yan yasmin yolanda yuki yusuf yvonne zach zachary zainab zara zoe mark will chase sue bill jack
    rob drew frank nick chuck hope rose joy faith grace dawn iris ivy amber ruby pearl lily daisy violet
    jade crystal melody heather hazel holly ginger sage heath robin jay dean dale glen grant lance max ray
    victor jasmine gene don miles pat penny
    """.split()
)
PLACES = frozenset(
    """
    africa america europe asia antarctica afghanistan algeria argentina australia austria bangladesh belgium
    bolivia brazil britain bulgaria cambodia canada chile china colombia croatia cuba cyprus denmark ecuador
    egypt england estonia ethiopia finland france germany ghana greece hungary iceland india indonesia iran
    iraq ireland israel italy jamaica japan jordan kenya korea kuwait latvia lebanon libya lithuania
    luxembourg malaysia malta mexico mongolia morocco myanmar nepal netherlands nicaragua nigeria norway
    pakistan panama paraguay peru philippines poland portugal qatar romania russia rwanda scotland senegal
    serbia singapore slovakia slovenia somalia spain sudan sweden switzerland syria taiwan tanzania thailand
    tibet tunisia turkey uganda ukraine uruguay venezuela vietnam wales yemen zambia zimbabwe uk usa uae eu
    alabama alaska arizona arkansas california colorado connecticut delaware florida georgia hawaii idaho
    illinois indiana iowa kansas kentucky louisiana maine maryland massachusetts michigan minnesota
    mississippi missouri montana nebraska nevada ohio oklahoma oregon pennsylvania tennessee texas utah
    vermont virginia washington wisconsin wyoming ontario quebec alberta queensland bavaria tuscany
    amsterdam ankara athens atlanta auckland austin baghdad bali baltimore bangalore bangkok barcelona
    beijing beirut belfast belgrade berlin birmingham bogota boston brisbane bristol broadway brooklyn
    brussels bucharest budapest buenos-aires cairo calgary cambridge canberra caracas casablanca chengdu
    chicago cincinnati cleveland cologne copenhagen dallas delhi denver detroit dhaka dubai dublin edinburgh
    florence frankfurt geneva glasgow guangzhou hamburg hangzhou hanoi havana helsinki houston istanbul
    jakarta jerusalem johannesburg karachi kathmandu kiev kyiv kyoto lagos lahore leeds lima lisbon
    liverpool london lyon madrid manchester manhattan manila marseille melbourne miami milan milwaukee
    minneapolis montreal moscow mumbai munich nairobi nanjing naples nashville osaka oslo ottawa oxford
    paris philadelphia phoenix pittsburgh portland prague rio rome rotterdam sacramento salzburg santiago
    sapporo seattle seoul seville shanghai shenzhen sheffield stockholm stuttgart suzhou sydney taipei tampa
    tehran tokyo toronto tunis turin vancouver venice vienna vilnius warsaw wellington wuhan yokohama zagreb
    zurich hollywood yosemite yellowstone everest alps rockies himalayas andes sahara thames danube nile
    atlantic pacific arctic caribbean nyc la sf dc jfk lax heathrow
    """.split()
)
ORGANIZATIONS = frozenset(
    """
    google microsoft apple amazon netflix tesla siemens spotify openai nasa nato unesco unicef ibm intel
    nvidia amd oracle sap samsung sony toyota honda bmw volkswagen ford boeing airbus facebook meta twitter
    uber lyft airbnb paypal visa mastercard starbucks mcdonald's walmart costco target ikea nike adidas
    disney pixar warner hbo bbc cnn nbc fbi cia imf who mit nyu ucla harvard stanford yale princeton oxford
    cambridge berkeley hilton marriott fedex ups dhl chase citibank hsbc goldman deloitte kpmg accenture
    mckinsey pfizer bayer novartis huawei tencent alibaba baidu bytedance xiaomi lenovo infosys wipro ebay
    etsy shopify stripe anthropic deepmind at&t verizon vodafone unilever nestle pepsi greenpeace interpol
    """.split()
)
# Read as technology whatever their case.
TECHNOLOGIES = frozenset(
    """
    python javascript typescript java golang kotlin scala haskell erlang elixir perl php sql html css json
    yaml xml csv postgres postgresql mysql sqlite mariadb mongodb redis memcached cassandra elasticsearch
    opensearch qdrant pinecone weaviate milvus chroma pgvector neo4j kafka rabbitmq celery docker kubernetes
    k8s helm terraform ansible jenkins prometheus grafana nginx apache linux ubuntu debian fedora centos
    windows macos android ios git github gitlab bitbucket jira confluence slack zoom notion trello figma
    photoshop excel powerpoint vim emacs vscode pycharm django flask fastapi react vue angular svelte nextjs
    node nodejs deno webpack vite numpy pandas scipy matplotlib jupyter pytorch tensorflow keras langchain
    langgraph llamaindex huggingface openssl graphql grpc oauth aws gcp azure heroku vercel cloudflare
    snowflake databricks airflow spark hadoop chatgpt gpt claude gemini llama mistral copilot whatsapp
    telegram wechat tiktok instagram youtube linkedin reddit discord pinterest snapchat netbeans firefox
    chrome safari bluetooth usb wifi iphone ipad macbook kindle playstation xbox procreate api http https
    ssh tls dns cpu gpu ram ssd pdf url sdk cli rest rust go swift ruby
    """.split()
)
# Of these, the ones that are no word of their own and so count in lower case too.
LOWERCASE_TECHNOLOGIES = TECHNOLOGIES - frozenset(
    """
    go rust swift ruby react node rest spark notion zoom slack windows apache chrome safari kindle git helm
    flask celery chroma vue angular copilot gemini llama claude python java scala perl discord telegram
    excel oracle confluence keras wifi usb bluetooth api http https pdf url cpu gpu ram csv sql cli sdk json
    html css xml ssh tls dns ios android photoshop docker snowflake azure mistral whatsapp instagram youtube
    reddit
    """.split()
)
# Known products of two words, and what a product's second word looks like.
PRODUCT_WORDS = frozenset(
    "pro max mini plus ultra air lite studio code maps drive switch watch phone pods book pad carbon".split()
)
PLACE_ENDINGS = frozenset(
    """
    street road avenue boulevard lane river lake park bridge airport city island islands beach county square
    mountain mountains valley bay harbor harbour canyon falls forest garden gardens plaza station heights
    hill hills ocean sea desert peninsula province village town castle palace tower terrace court
    """.split()
)
PLACE_OPENINGS = frozenset("mount mt lake san santa port fort cape los las new north south east west".split())
ORGANIZATION_ENDINGS = frozenset(
    """
    university hospital school college corp corporation inc ltd llc gmbh plc bank company co institute
    organization organisation association foundation church cathedral museum library club airlines airways
    department ministry labs lab group cross union council committee agency academy clinic partners studios
    records press society trust technologies systems solutions industries motors pharmacy restaurant cafe
    hotel team united
    """.split()
)
ORGANIZATION_OPENINGS = frozenset(
    "university bank ministry department institute college house bureau".split()
)
# Joined to what a possessive belongs to: Saint Mary's Hospital, but Ann's Toyota.
OWNED_ENDINGS = frozenset("hospital school college church cathedral university day square".split())
# Small words inside a name, when a capital follows.
CONNECTORS = frozenset(
    "of the de da do dos das del della di du la le van von der den ter bin ibn al el y".split()
)
FOLLOWS_PLACE = frozenset(
    "in near along visit visited visiting across around toward towards outside through leaving left".split()
)
FOLLOWS_ORGANIZATION = frozenset("at joined join joining".split())
FOLLOWS_WORK = frozenset(
    """
    read reading watch watched watching book books movie movies film films song songs novel album series
    show episode play played playing finished wrote written called titled listen listened poem painting sang
    sing musical by
    """.split()
)
