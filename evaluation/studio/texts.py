"""What made films speak of and show: our own sentences and card texts, English and Mandarin.

Owns words only. Names and figures are invented. Sentences hold at most about fourteen words, so that a film of twenty seconds has several.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Topic:
    """One subject: sentences in an order that makes sense, and the texts of one card of each kind.

    ``pairs`` are the rows of a chart; ``sides`` the two columns of a comparison (heading, text); ``name`` a person and what they do.
    """

    title: str
    subtitle: str
    sentences: tuple[str, ...]
    heading: str
    items: tuple[str, ...]
    figure: tuple[str, str]
    quote: tuple[str, str]
    sides: tuple[tuple[str, str], tuple[str, str]]
    chart: str
    pairs: tuple[tuple[str, str], ...]
    name: tuple[str, str]


ENGLISH = (
    Topic(
        "The River Trade",
        "How grain moved before the railway",
        (
            "The old river carried grain, salt and stone to the market.",
            "Boats went down with the current and were pulled back by horses.",
            "A full load of grain took nine days to reach the coast.",
            "In winter the water froze, and nobody was paid.",
            "Villages along the bank lived from the tolls they collected.",
            "Some captains carried letters, which was against the law.",
            "Then the railway came, and the river grew quiet.",
            "Within twenty years most of the boats were firewood.",
            "Today the tow path is a place to walk.",
            "If you look closely, you can still see marks of rope on the bridge.",
        ),
        "What the boats carried",
        ("Grain from the north", "Salt in wooden barrels", "Stone for the harbour", "Letters, against the law"),
        ("4,200", "boats on the river in 1840"),
        ("The river pays for everything, even for its own bridges", "Anna Keller, toll clerk"),
        (("By river", "Nine days, but cheap"), ("By rail", "One day, at twice the price")),
        "Tons moved each year",
        (("Grain", "310"), ("Salt", "95"), ("Stone", "140")),
        ("Thomas Reed", "Historian of inland trade"),
    ),
    Topic(
        "Bread at Night",
        "A baker's working day",
        (
            "The bakery opens its doors at five in the morning.",
            "By then the work of the night is almost done.",
            "Flour, water, salt and time are all that good bread needs.",
            "The dough rests for twelve hours in a cool room.",
            "Cold makes the yeast slow, and slow yeast gives more flavour.",
            "At three the oven reaches two hundred and fifty degrees.",
            "Each loaf is cut by hand, so that it opens where the baker wants.",
            "Steam keeps the crust soft until the bread has grown.",
            "After forty minutes the smell fills the whole street.",
            "The first customer is always the same old man with his dog.",
        ),
        "Four things you need",
        ("Flour and water", "A little salt", "A cool room", "Twelve hours of time"),
        ("250°", "inside the oven at three"),
        ("Good bread cannot be hurried by anyone", "Marta Lindqvist, baker"),
        (("Fast dough", "Ready in one hour"), ("Slow dough", "Better flavour and crust")),
        "Loaves sold in a week",
        (("Rye", "480"), ("Wheat", "720"), ("Spelt", "150"), ("Rolls", "960")),
        ("Marta Lindqvist", "Baker for thirty years"),
    ),
    Topic(
        "Watching the Sky",
        "A small observatory and its people",
        (
            "On a clear night the dome opens without a sound.",
            "The telescope is older than anyone who works with it.",
            "Its mirror was ground by hand and took three years to finish.",
            "Most of the work today is done by a small computer.",
            "It points the mirror, follows the stars and keeps the records.",
            "Still, somebody has to watch for clouds.",
            "Last spring they found a comet that nobody had seen before.",
            "It was faint, moving slowly toward the sun.",
            "They checked it four times before they told the world.",
            "Now the comet carries the name of the village below.",
        ),
        "A night in the dome",
        ("Open the dome at dusk", "Find a guide star", "Expose for ten minutes", "Write the log by hand"),
        ("73%", "of all nights are cloudy here"),
        ("We look at old light and call it news", "Peter Osei, observer"),
        (("By eye", "One star at a time"), ("By camera", "Thousands in one picture")),
        "Clear nights by season",
        (("Spring", "24"), ("Summer", "31"), ("Autumn", "19"), ("Winter", "12")),
        ("Peter Osei", "Observer since 1998"),
    ),
    Topic(
        "Clean Water",
        "Pipes under an old city",
        (
            "Under the streets there are six hundred miles of pipe.",
            "The oldest of them are made of wood and still in use.",
            "Copper pipes keep cold water clean, and lead pipes do not.",
            "The city began to replace them in the spring.",
            "Every house has to be visited, measured and connected again.",
            "Workers close one street at a time, usually for a week.",
            "The cost is high, but so is the price of doing nothing.",
            "New sensors listen for leaks at night, when it is quiet.",
            "A leak that used to take a month is found within hours.",
            "By the end of the year half of the work will be done.",
        ),
        "How a street is renewed",
        ("Close the street", "Remove the old pipe", "Test the new pipe", "Connect every house"),
        ("600", "miles of pipe under the city"),
        ("Water tells you nothing until it is gone", "Ines Duarte, engineer"),
        (("Copper", "Lasts fifty years"), ("Plastic", "Costs half as much")),
        "Leaks found each month",
        (("March", "12"), ("April", "28"), ("May", "41")),
        ("Ines Duarte", "Head of the water works"),
    ),
    Topic(
        "The Paper Mill",
        "From rags to printed pages",
        (
            "Paper was once made from old shirts and torn sails.",
            "The rags were washed, beaten and boiled until nothing held together.",
            "A frame of fine wire lifted the wet sheet out of the tub.",
            "One man could make two thousand sheets in a day.",
            "Paper was cheap, but skilled printers asked for high wages.",
            "So the printers taught their children and kept the secret.",
            "Wood changed everything in the middle of the century.",
            "A single tree gave more paper than a year of rags.",
            "The new paper turned yellow within a few years.",
            "Old books on rag paper are still white today.",
        ),
        "Steps of the old method",
        ("Wash the rags", "Beat them to pulp", "Lift the sheet", "Press and dry"),
        ("2,000", "sheets a day from one man"),
        ("A book is a shirt that learned to read", "Old printers' saying"),
        (("Rag paper", "White after centuries"), ("Wood paper", "Yellow after years")),
        "Price of one ream",
        (("1750", "21"), ("1800", "26"), ("1850", "9")),
        ("Louise Baret", "Keeper of the mill"),
    ),
)

MANDARIN = (
    Topic(
        "活字印刷",
        "一项改变世界的发明",
        (
            "活字印刷是一项重要的发明。",
            "工匠先用泥土做成一个一个的小字。",
            "然后把它们放进火里烧硬。",
            "印完一本书以后，这些字还可以再用。",
            "从前抄一本书需要三个月。",
            "现在一天就能印出几百页。",
            "书变得便宜，读书的人也越来越多。",
            "后来人们又用木头和金属做字。",
            "这种方法很快传到了别的国家。",
            "今天我们在博物馆里还能看到这些字。",
        ),
        "印刷的步骤",
        ("刻出每一个字", "按顺序排好", "刷上一层墨", "盖上白纸"),
        ("3000", "一套活字的数量"),
        ("一本书可以走得比人更远", "老印刷工人"),
        (("抄写", "三个月一本"), ("印刷", "一天几百页")),
        "每年印书的数量",
        (("北方", "120"), ("南方", "260"), ("西部", "45")),
        ("王建国", "印刷历史研究员"),
    ),
    Topic(
        "河边的茶馆",
        "一家老店的早晨",
        (
            "河边有一家开了一百年的茶馆。",
            "每天早上五点，老板就开始烧水。",
            "第一批客人都是附近的老人。",
            "他们坐在窗边，一边喝茶，一边聊天。",
            "茶叶来自南边的山上，价格不高。",
            "下雨的时候，屋子里坐满了人。",
            "年轻人喜欢在这里看书和写字。",
            "老板说，好茶需要好水，也需要时间。",
            "去年冬天，他把茶馆交给了女儿。",
            "女儿没有改变什么，只是换了一盏灯。",
        ),
        "泡茶的方法",
        ("先把水烧开", "放入新茶叶", "等待三分钟", "倒进小杯子"),
        ("100", "年的历史"),
        ("好茶需要好水，也需要时间", "茶馆老板"),
        (("绿茶", "清香，适合夏天"), ("红茶", "温暖，适合冬天")),
        "每天卖出的茶",
        (("绿茶", "85"), ("红茶", "60"), ("花茶", "34")),
        ("李小梅", "茶馆的新老板"),
    ),
    Topic(
        "城市的水",
        "看不见的地下工程",
        (
            "城市的地下有六百公里的水管。",
            "最老的水管已经用了八十年。",
            "工人们从春天开始更换这些水管。",
            "他们一次只关闭一条街道。",
            "每一户人家都要重新连接。",
            "新的机器在晚上检查漏水的地方。",
            "以前找到一个漏点需要一个月。",
            "现在只要几个小时就够了。",
            "工程的费用很高，但是不能不做。",
            "到年底，一半的工作就会完成。",
        ),
        "工程的四个步骤",
        ("关闭街道", "取出旧水管", "安装新水管", "检查每一户"),
        ("600", "公里的地下水管"),
        ("水不说话，直到它不见了", "工程师张伟"),
        (("铜管", "可以用五十年"), ("塑料管", "价格只要一半")),
        "每月发现的漏点",
        (("三月", "12"), ("四月", "28"), ("五月", "41")),
        ("张伟", "自来水公司工程师"),
    ),
)
"""No subject of one list is a translation of another."""
