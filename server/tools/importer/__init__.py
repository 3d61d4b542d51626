"""`bifolio import strapi`: takes over the content of a Strapi installation as files of a site."""
