"""`quire import strapi`: content of the reference implementation becomes files of a site."""
