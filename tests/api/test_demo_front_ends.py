"""Tests with the requests of two front ends that Strapi publishes as demonstrations.

The responses must contain what the pages of the front ends need:
- LaunchPad (Strapi 5) never sends a populate parameter, because middlewares on its Strapi server add one.
  Here, `api.populate` takes their place.
- FoodAdvisor (Strapi 4) needs `api.format: v4`. It mixes the notations of populate, populates attributes that
  only some components have or that do not exist, and requests documents by number.

The schemas have the attributes that the requests name.
"""

import json
from typing import Any
from urllib.parse import parse_qsl, urlencode

import pytest

from tests.conftest import MakeApi
from tests.sites import STRING, Answer, Api, collection, component, documents, relation, schema, translated

MEDIA = {"type": "media"}
UID = {"type": "uid"}
PNG = b"\x89PNG\r\n\x1a\n"
LOCALES = "locales: {default: en, available: [en, fr]}\n"


def part(uid: str, *, many: bool = False) -> dict[str, Any]:
    """Return the schema of a component attribute."""
    return {"type": "component", "component": uid, "repeatable": many}


def zone(*uids: str) -> dict[str, Any]:
    """Return the schema of a dynamic zone."""
    return {"type": "dynamiczone", "components": list(uids)}


def localized(name: str, attributes: dict[str, Any], *, single: bool = False) -> dict[str, str]:
    """Return the schema file of a content type with drafts in which all attributes are localized."""
    own = {key: translated({"type": a} if isinstance(a, str) else a) for key, a in attributes.items()}
    return {f"content-types/{name}.json": schema(name, own, drafts=True, localized=True, single=single)}


def categories(attributes: dict[str, Any]) -> dict[str, str]:
    """Return the schema file of categories, with the irregular plural `categories`."""
    return {"content-types/category.json": schema("category", attributes).replace("categorys", "categories")}


def single(name: str, **values: Any) -> dict[str, str]:
    """Return the file that contains a single type's document."""
    return {f"content/{name}.json": json.dumps(values)}


SEO = component("shared.seo", {"metaTitle": STRING, "metaImage": MEDIA})
LAUNCHPAD = {
    **SEO,
    **component("shared.link", {"text": STRING, "URL": STRING, "target": STRING}),
    **component("shared.button", {"text": STRING, "URL": STRING}),
    **component("shared.perks", {"text": STRING}),
    **component("shared.social", {"URL": STRING, "icon": relation("oneToOne", "logo")}),
    **component(
        "global.navbar",
        {
            "logo": relation("oneToOne", "logo"),
            "left_navbar_items": part("shared.link", many=True),
            "right_navbar_items": part("shared.link", many=True),
        },
    ),
    **component(
        "global.footer",
        {
            "copyright": STRING,
            "logo": relation("oneToOne", "logo"),
            "internal_links": part("shared.link", many=True),
            "social_media_links": part("shared.social", many=True),
        },
    ),
    **component("dynamic-zone.hero", {"heading": STRING, "CTAs": part("shared.button", many=True)}),
    **component("dynamic-zone.testimonials", {"testimonials": relation("oneToMany", "testimonial")}),
    **component("dynamic-zone.faq", {"faqs": relation("oneToMany", "faq")}),
    **component("dynamic-zone.related-articles", {"articles": relation("oneToMany", "article")}),
    **component("dynamic-zone.related-products", {"products": relation("oneToMany", "product")}),
    **localized(
        "global",
        {"navbar": part("global.navbar"), "footer": part("global.footer"), "seo": part("shared.seo")},
        single=True,
    ),
    **localized("blog-page", {"heading": STRING, "seo": part("shared.seo")}, single=True),
    **localized(
        "page",
        {
            "slug": UID,
            "seo": part("shared.seo"),
            "dynamic_zone": zone("dynamic-zone.hero", "dynamic-zone.testimonials", "dynamic-zone.faq"),
        },
    ),
    **localized(
        "article",
        {
            "title": STRING,
            "slug": UID,
            "content": "blocks",
            "image": MEDIA,
            "categories": relation("oneToMany", "category"),
            "dynamic_zone": zone("dynamic-zone.related-articles"),
            "seo": part("shared.seo"),
        },
    ),
    **localized(
        "product",
        {
            "name": STRING,
            "slug": UID,
            "price": "integer",
            "featured": "boolean",
            "images": {**MEDIA, "multiple": True},
            "perks": part("shared.perks", many=True),
            "categories": relation("oneToMany", "category"),
            "plans": relation("oneToMany", "plan"),
            "dynamic_zone": zone("dynamic-zone.related-products"),
        },
    ),
    **categories({"name": STRING}),
    **collection("plan", {"name": STRING, "perks": part("shared.perks", many=True)}),
    **collection("logo", {"company": STRING, "image": MEDIA}),
    **collection("testimonial", {"text": STRING, "user": part("shared.user")}),
    **component("shared.user", {"firstname": STRING, "image": MEDIA}),
    **collection("faq", {"question": STRING, "answer": STRING}),
    "content/uploads/rocket.png": PNG,
}
LAUNCHPAD_SETTINGS = f"""{LOCALES}
api:
  populate:
    global:
      navbar:
        populate: {{logo: {{populate: image}}, left_navbar_items: true, right_navbar_items: true}}
      footer:
        populate:
          logo: {{populate: image}}
          internal_links: true
          social_media_links: {{populate: {{icon: {{populate: [image]}}}}}}
      seo: {{populate: metaImage}}
    blog-page: {{seo: {{populate: {{metaImage: true}}}}, localizations: true}}
    page:
      localizations: true
      seo: {{populate: {{metaImage: true}}}}
      dynamic_zone:
        "on":
          dynamic-zone.hero: {{populate: {{CTAs: true}}}}
          dynamic-zone.testimonials:
            populate: {{testimonials: {{populate: {{user: {{populate: image}}}}}}}}
          dynamic-zone.faq: {{populate: {{faqs: true}}}}
    article:
      localizations: true
      image: true
      categories: true
      dynamic_zone:
        "on":
          dynamic-zone.related-articles: {{populate: {{articles: {{populate: {{image: true}}}}}}}}
      seo: {{populate: {{metaImage: true}}}}
    product:
      localizations: true
      images: true
      perks: true
      categories: true
      plans: {{populate: {{perks: true}}}}
      dynamic_zone:
        "on":
          dynamic-zone.related-products: {{populate: {{products: {{populate: {{images: true}}}}}}}}
roles:
  public:
    global: [find]
    blog-page: [find]
    page: [find]
    article: [find]
    product: [find]
    category: [find]
    plan: [find]
    logo: [find]
    testimonial: [find]
    faq: [find]
    upload: [find]
"""
LAUNCHPAD_CONTENT = {
    **single(
        "global",
        navbar={
            "logo": "launchpad",
            "left_navbar_items": [{"text": "Blog", "URL": "/blog"}],
            "right_navbar_items": [{"text": "Sign up", "URL": "/sign-up"}],
        },
        footer={
            "copyright": "LaunchPad",
            "logo": "launchpad",
            "internal_links": [{"text": "Pricing", "URL": "/pricing"}],
            "social_media_links": [{"URL": "https://example.org", "icon": "launchpad"}],
        },
        seo={"metaTitle": "LaunchPad", "metaImage": "rocket.png"},
    ),
    **single("blog-page", heading="Blog", seo={"metaTitle": "Blog", "metaImage": "rocket.png"}),
    **documents("logos", launchpad={"company": "LaunchPad", "image": "rocket.png"}),
    **documents("testimonials", one={"text": "Up!", "user": {"firstname": "Ann", "image": "rocket.png"}}),
    **documents("faqs", one={"question": "How high?", "answer": "Very."}),
    **documents("categories", news={"name": "News"}),
    **documents("plans", basic={"name": "Basic", "perks": [{"text": "One rocket"}]}),
    **documents(
        "pages",
        home={
            "slug": "homepage",
            "seo": {"metaTitle": "Home", "metaImage": "rocket.png"},
            "dynamic_zone": [
                {
                    "__component": "dynamic-zone.hero",
                    "heading": "To space",
                    "CTAs": [{"text": "Go", "URL": "/go"}],
                },
                {"__component": "dynamic-zone.testimonials", "testimonials": ["one"]},
                {"__component": "dynamic-zone.faq", "faqs": ["one"]},
            ],
        },
    ),
    "content/pages/home.fr.json": json.dumps({"slug": "accueil"}),
    **documents(
        "articles",
        first={
            "title": "First",
            "slug": "first",
            "image": "rocket.png",
            "categories": ["news"],
            "content": [{"type": "paragraph", "children": [{"type": "text", "text": "Hello"}]}],
            "dynamic_zone": [{"__component": "dynamic-zone.related-articles", "articles": ["second"]}],
            "seo": {"metaTitle": "First", "metaImage": "rocket.png"},
        },
        second={"title": "Second", "slug": "second", "image": "rocket.png"},
    ),
    "content/articles/first.fr.json": json.dumps({"title": "Premier", "slug": "premier"}),
    "content/articles/third.draft.json": json.dumps({"title": "Third", "slug": "third"}),
    **documents(
        "products",
        rocket={
            "name": "Rocket",
            "slug": "rocket",
            "price": 5,
            "featured": True,
            "images": ["rocket.png"],
            "perks": [{"text": "Fast"}],
            "categories": ["news"],
            "plans": ["basic"],
            "dynamic_zone": [{"__component": "dynamic-zone.related-products", "products": ["boots"]}],
        },
        boots={"name": "Boots", "slug": "boots", "price": 2, "images": ["rocket.png"]},
    ),
}


@pytest.fixture
def launchpad(make_api: MakeApi) -> Api:
    return make_api({**LAUNCHPAD, **LAUNCHPAD_CONTENT, "site.yaml": LAUNCHPAD_SETTINGS})


def client_get(api: Api, path: str, query: str, who: str = "public") -> Answer:
    """Send a GET request as Strapi's official client does, with encoded brackets and its two headers."""
    headers = {"Content-Type": "application/json", "strapi-encode-source-maps": "false"}
    return api.get(f"/api/{path}?{urlencode(parse_qsl(query))}", who, headers=headers)


def test_launchpad_has_its_navbar_and_footer(launchpad: Api) -> None:
    data = client_get(launchpad, "global", "locale=en&status=published").data
    assert data["navbar"]["logo"]["image"]["url"] == "/uploads/rocket.png"
    assert [item["text"] for item in data["navbar"]["left_navbar_items"]] == ["Blog"]
    assert [item["text"] for item in data["navbar"]["right_navbar_items"]] == ["Sign up"]
    assert data["footer"]["internal_links"][0]["URL"] == "/pricing"
    assert data["footer"]["social_media_links"][0]["icon"]["image"]["url"] == "/uploads/rocket.png"
    assert data["seo"]["metaImage"]["url"] == "/uploads/rocket.png"


@pytest.mark.parametrize(
    "query",
    [
        "filters[slug][$eq]=homepage&filters[locale][$eq]=en&status=published",
        "filters[slug]=homepage&filters[locale]=en",
    ],
)
def test_launchpad_has_the_sections_of_a_page(launchpad: Api, query: str) -> None:
    (page,) = client_get(launchpad, "pages", query).data
    hero, testimonials, faq = page["dynamic_zone"]
    assert (hero["__component"], hero["CTAs"][0]["text"]) == ("dynamic-zone.hero", "Go")
    assert testimonials["testimonials"][0]["user"]["image"]["url"] == "/uploads/rocket.png"
    assert faq["faqs"][0]["question"] == "How high?"
    assert [(other["locale"], other["slug"]) for other in page["localizations"]] == [("fr", "accueil")]


def test_launchpad_asks_for_what_search_engines_see(launchpad: Api) -> None:
    query = "filters[slug]=homepage&filters[locale]=en&populate=seo.metaImage"
    (page,) = client_get(launchpad, "pages", query).data
    assert page["seo"]["metaImage"]["url"] == "/uploads/rocket.png"


def test_launchpad_lists_its_blog(launchpad: Api) -> None:
    assert client_get(launchpad, "blog-page", "locale=en&status=published").data["heading"] == "Blog"
    found = client_get(launchpad, "articles", "filters[locale][$eq]=en&status=published").data
    assert [article["title"] for article in found] == ["First", "Second"]
    assert found[0]["image"]["url"] == "/uploads/rocket.png"
    assert found[0]["categories"][0]["name"] == "News"
    (one,) = client_get(launchpad, "articles", "filters[slug]=first&filters[locale]=en").data
    assert one["dynamic_zone"][0]["articles"][0]["image"]["url"] == "/uploads/rocket.png"
    assert one["localizations"][0]["slug"] == "premier"
    assert one["content"][0]["children"][0]["text"] == "Hello"
    (french,) = client_get(launchpad, "articles", "filters[slug]=premier&filters[locale]=fr").data
    assert french["localizations"][0]["slug"] == "first"


def test_launchpad_lists_its_products(launchpad: Api) -> None:
    found = client_get(launchpad, "products", "status=published").data
    assert [product["name"] for product in found if product["featured"]] == ["Rocket"]
    (rocket,) = client_get(launchpad, "products", "filters[slug]=rocket&status=published").data
    assert rocket["plans"][0]["perks"][0]["text"] == "One rocket"
    assert rocket["dynamic_zone"][0]["products"][0]["images"][0]["url"] == "/uploads/rocket.png"
    assert rocket["perks"][0]["text"] == "Fast"


def test_launchpad_previews_drafts_with_a_token(launchpad: Api) -> None:
    query = "filters[slug][$eq]=third&filters[locale][$eq]=en&status=draft"
    assert client_get(launchpad, "articles", query).status == 403
    (draft,) = client_get(launchpad, "articles", query, "full").data
    assert draft["title"] == "Third"


FOODADVISOR = {
    **component("shared.social", {"title": STRING, "image": MEDIA}),
    **component("shared.seo", {"metaTitle": STRING, "metaSocial": part("shared.social", many=True)}),
    **component("shared.header", {"theme": STRING, "label": STRING, "title": STRING}),
    **component("shared.link", {"href": STRING, "label": STRING}),
    **component("shared.button", {"theme": STRING, "link": part("shared.link")}),
    **component("shared.network", {"network": STRING, "url": STRING}),
    **component("shared.question", {"question": STRING, "answer": STRING}),
    **component("shared.card", {"name": STRING, "picture": MEDIA}),
    **component(
        "global.navigation", {"leftButton": part("shared.link"), "links": part("shared.link", many=True)}
    ),
    **component("global.column", {"title": STRING, "links": part("shared.link", many=True)}),
    **component("global.footer", {"label": STRING, "footerColumns": part("global.column", many=True)}),
    **component("restaurant.hours", {"day_interval": STRING, "opening_hour": STRING}),
    **component("restaurant.location", {"address": STRING}),
    **component(
        "restaurant.information",
        {
            "description": STRING,
            "opening_hours": part("restaurant.hours", many=True),
            "location": part("restaurant.location"),
        },
    ),
    **component(
        "blocks.hero",
        {"text": STRING, "images": {**MEDIA, "multiple": True}, "buttons": part("shared.button", many=True)},
    ),
    **component("blocks.faq", {"title": STRING, "faq": part("shared.question", many=True)}),
    **component("blocks.team", {"header": part("shared.header"), "members": part("shared.card", many=True)}),
    **component(
        "blocks.related-restaurants",
        {"header": part("shared.header"), "restaurants": relation("oneToMany", "restaurant")},
    ),
    **localized(
        "global",
        {"navigation": part("global.navigation"), "footer": part("global.footer")},
        single=True,
    ),
    **localized(
        "restaurant-page",
        {
            "header": part("shared.header"),
            "restaurantsPerPage": "integer",
            "seo": part("shared.seo"),
            "blocks": zone("blocks.hero", "blocks.faq"),
        },
        single=True,
    ),
    **localized(
        "page",
        {
            "title": STRING,
            "slug": UID,
            "seo": part("shared.seo"),
            "blocks": zone("blocks.hero", "blocks.faq", "blocks.team", "blocks.related-restaurants"),
        },
    ),
    **localized(
        "restaurant",
        {
            "name": STRING,
            "slug": UID,
            "price": {"type": "enumeration", "enum": ["p1", "p2"]},
            "images": {**MEDIA, "multiple": True},
            "information": part("restaurant.information"),
            "socialNetworks": part("shared.network", many=True),
            "seo": part("shared.seo"),
            "category": relation("manyToOne", "category", inversedBy="restaurants"),
            "place": relation("manyToOne", "place", inversedBy="restaurants"),
            "reviews": relation("oneToMany", "review", mappedBy="restaurant"),
            "blocks": zone("blocks.faq", "blocks.related-restaurants"),
        },
    ),
    **collection(
        "review",
        {
            "content": STRING,
            "note": "integer",
            "author": relation("manyToOne", "guest"),
            "restaurant": relation("manyToOne", "restaurant", inversedBy="reviews"),
        },
    ),
    **collection("guest", {"username": STRING, "picture": MEDIA}),
    **categories({"name": STRING, "restaurants": relation("oneToMany", "restaurant", mappedBy="category")}),
    **collection(
        "place", {"name": STRING, "restaurants": relation("oneToMany", "restaurant", mappedBy="place")}
    ),
    "content/uploads/plate.png": PNG,
}
FOODADVISOR_SETTINGS = f"""{LOCALES}
api: {{format: v4, populate_with_pagination: allow}}
roles:
  public:
    global: [find]
    restaurant-page: [find]
    page: [find, findOne]
    restaurant: [find, findOne]
    review: [find]
    guest: [find]
    category: [find]
    place: [find]
    upload: [find]
"""
FOODADVISOR_CONTENT = {
    **single(
        "global",
        navigation={
            "leftButton": {"href": "/", "label": "FoodAdvisor"},
            "links": [{"href": "/restaurants", "label": "Restaurants"}],
        },
        footer={
            "label": "Food",
            "footerColumns": [{"title": "About", "links": [{"href": "/about", "label": "Us"}]}],
        },
    ),
    **single(
        "restaurant-page",
        header={"title": "Restaurants"},
        restaurantsPerPage=1,
        seo={"metaTitle": "Restaurants", "metaSocial": [{"title": "Eat"}]},
        blocks=[
            {
                "__component": "blocks.hero",
                "text": "Eat",
                "images": ["plate.png"],
                "buttons": [{"theme": "primary", "link": {"href": "/eat", "label": "Eat"}}],
            }
        ],
    ),
    "content/restaurant-page.fr.json": json.dumps({"header": {"title": "Les restaurants"}}),
    **documents("guests", ann={"username": "ann", "picture": "plate.png"}),
    **documents("categories", fish={"name": "Fish"}, meat={"name": "Meat"}),
    **documents("places", quay={"name": "Quay"}),
    **documents(
        "restaurants",
        pier={
            "name": "Pier",
            "slug": "pier",
            "price": "p1",
            "images": ["plate.png"],
            "category": "fish",
            "place": "quay",
            "information": {
                "description": "At the end",
                "opening_hours": [{"day_interval": "Mon", "opening_hour": "9"}],
                "location": {"address": "1 Quay"},
            },
            "socialNetworks": [{"network": "x", "url": "https://example.org"}],
            "seo": {"metaTitle": "Pier"},
            "blocks": [
                {
                    "__component": "blocks.related-restaurants",
                    "header": {"title": "More"},
                    "restaurants": ["grill"],
                },
                {
                    "__component": "blocks.faq",
                    "title": "Ask",
                    "faq": [{"question": "Open?", "answer": "Yes"}],
                },
            ],
        },
        grill={"name": "Grill", "slug": "grill", "category": "meat", "images": ["plate.png"]},
    ),
    "content/restaurants/pier.fr.json": json.dumps({"name": "Jetée", "slug": "jetee"}),
    "content/restaurants/soon.draft.json": json.dumps({"name": "Soon", "slug": "soon"}),
    **documents("reviews", good={"content": "Good", "note": 4, "author": "ann", "restaurant": "pier"}),
    **documents(
        "pages",
        about={
            "title": "About",
            "slug": "about",
            "seo": {"metaTitle": "About", "metaSocial": [{"title": "Us", "image": "plate.png"}]},
            "blocks": [
                {
                    "__component": "blocks.team",
                    "header": {"title": "Team"},
                    "members": [{"name": "Bo", "picture": "plate.png"}],
                },
                {"__component": "blocks.related-restaurants", "restaurants": ["pier"]},
            ],
        },
    ),
}


@pytest.fixture
def foodadvisor(make_api: MakeApi) -> Api:
    return make_api({**FOODADVISOR, **FOODADVISOR_CONTENT, "site.yaml": FOODADVISOR_SETTINGS})


def attributes(api: Api, path: str, who: str = "public") -> dict[str, Any]:
    """Return the attributes of a single type, or of the only document in a list."""
    data = api.get(f"/api/{path}", who).data
    (one,) = data if isinstance(data, list) else [data]
    return one["attributes"]


def test_foodadvisor_has_its_navigation_and_footer(foodadvisor: Api) -> None:
    query = "populate[navigation][populate]=*&populate[footer][populate][footerColumns][populate]=*&locale=en"
    data = attributes(foodadvisor, f"global?{query}")
    assert data["navigation"]["leftButton"]["label"] == "FoodAdvisor"
    assert data["navigation"]["links"][0]["href"] == "/restaurants"
    assert data["footer"]["footerColumns"][0]["links"][0]["label"] == "Us"


def test_foodadvisor_has_the_page_of_its_restaurants(foodadvisor: Api) -> None:
    query = (
        "locale=en&populate[blocks][populate]=*,buttons.link&populate=localizations"
        "&populate[header]=*&populate[seo]=metaSocial"
    )
    data = attributes(foodadvisor, f"restaurant-page?{query}")
    assert data["header"]["title"] == "Restaurants"
    assert data["blocks"][0]["buttons"][0]["link"]["href"] == "/eat"
    assert data["blocks"][0]["images"]["data"][0]["attributes"]["url"] == "/uploads/plate.png"
    assert data["seo"]["metaTitle"] == "Restaurants"
    assert data["localizations"]["data"][0]["attributes"]["locale"] == "fr"
    other = attributes(foodadvisor, "restaurant-page?locale=fr")
    assert other["locale"] == "fr"


def test_foodadvisor_lists_restaurants_in_pages(foodadvisor: Api) -> None:
    shown = "populate=images,category,place,information,seo&locale=en"
    page = "pagination[limit]=1&pagination[start]=0&pagination[withCount]=true"
    answer = foodadvisor.get(f"/api/restaurants?{page}&{shown}", "public")
    assert answer.body["meta"]["pagination"] == {"start": 0, "limit": 1, "total": 2}
    card = answer.data[0]["attributes"]
    assert card["category"]["data"]["attributes"]["name"] == "Fish"
    assert card["place"]["data"]["attributes"]["name"] == "Quay"
    assert card["images"]["data"][0]["attributes"]["url"] == "/uploads/plate.png"
    assert card["information"]["description"] == "At the end"
    meat = attributes(foodadvisor, f"restaurants?{page}&{shown}&filters[category][name][$eq]=Meat")
    assert meat["name"] == "Grill"
    assert len(foodadvisor.get("/api/categories?pagination[limit]=99", "public").data) == 2


RESTAURANT = (
    "locale={locale}&populate[reviews][populate]=author,author.picture"
    "&populate[information][populate]=opening_hours,location&populate[images][fields]=url"
    "&populate[category][fields]=name&populate[localizations]=*&populate[socialNetworks]=*"
    "&populate[blocks][populate]=restaurants.images,header,faq,buttons.link"
)


def test_foodadvisor_shows_a_restaurant(foodadvisor: Api) -> None:
    data = attributes(foodadvisor, f"restaurants?filters[slug]=pier&{RESTAURANT.format(locale='en')}")
    review = data["reviews"]["data"][0]["attributes"]
    assert review["note"] == 4
    author = review["author"]["data"]["attributes"]
    assert author["username"] == "ann"
    assert author["picture"]["data"]["attributes"]["url"] == "/uploads/plate.png"
    assert data["information"]["opening_hours"][0]["day_interval"] == "Mon"
    assert data["information"]["location"]["address"] == "1 Quay"
    assert data["socialNetworks"][0]["url"] == "https://example.org"
    related, faq = data["blocks"]
    other = related["restaurants"]["data"][0]["attributes"]
    assert other["images"]["data"][0]["attributes"]["url"] == "/uploads/plate.png"
    assert related["header"]["title"] == "More"
    assert faq["faq"][0]["answer"] == "Yes"


def test_foodadvisor_links_to_the_other_locales(foodadvisor: Api) -> None:
    data = attributes(foodadvisor, f"restaurants?filters[slug]=pier&{RESTAURANT.format(locale='en')}")
    (other,) = data["localizations"]["data"]
    assert other["attributes"]["locale"] == "fr"
    # The front end then requests the other locale by its number.
    assert attributes(foodadvisor, f"restaurants/{other['id']}?locale=fr")["slug"] == "jetee"


def test_foodadvisor_shows_a_page(foodadvisor: Api) -> None:
    query = (
        "filters[slug][$eq]=about&locale=en&populate[blocks][populate]=members.picture,header,buttons.link,faq,"
        "featuresCheck,cards,pricingCards.perks,articles,restaurants,author.picture,images,cards.image,image"
        "&populate=localizations&populate[seo][populate]=metaSocial.image"
    )
    data = attributes(foodadvisor, f"pages?{query}")
    team, related = data["blocks"]
    assert team["members"][0]["picture"]["data"]["attributes"]["url"] == "/uploads/plate.png"
    assert related["restaurants"]["data"][0]["attributes"]["name"] == "Pier"
    assert data["seo"]["metaSocial"][0]["image"]["data"]["attributes"]["url"] == "/uploads/plate.png"
    assert data["localizations"]["data"] == []


def test_foodadvisor_previews_drafts_with_a_token(foodadvisor: Api) -> None:
    query = (
        f"filters[slug]=soon&publicationState=preview&published_at_null=true&{RESTAURANT.format(locale='en')}"
    )
    assert attributes(foodadvisor, f"restaurants?{query}", "full")["name"] == "Soon"


def test_what_is_read_as_strapi_4_read_it_is_refused_otherwise(foodadvisor: Api) -> None:
    number = foodadvisor.get("/api/restaurants?filters[slug]=pier", "public").data[0]["id"]
    assert foodadvisor.get("/api/restaurants/soon?publicationState=preview", "public").status == 403
    assert foodadvisor.get(f"/api/restaurants/{number}1", "public").status == 404
    (foodadvisor.root / "site.yaml").write_text(FOODADVISOR_SETTINGS.replace("format: v4, ", ""))
    foodadvisor.site.refresh()
    assert foodadvisor.get(f"/api/restaurants/{number}", "public").status == 404
    assert foodadvisor.get("/api/restaurants?populate=nothing", "public").status == 400
    assert foodadvisor.get("/api/restaurants?populate[images]=*&populate=category", "public").status == 400
    assert len(foodadvisor.get("/api/restaurants?publicationState=preview", "full").data) == 2
